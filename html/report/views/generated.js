// What was generated for a GPU that is not here, by point: exact counts, the same on all machines,
// and no times.
"use strict";

(() => {
  const { section, table, sheet, downloads, choice, number, Words } = Page;
  const KINDS = { fewer: "gain", more: "loss" };
  const FIRST = ["launches", "with CUDA graphs"];

  const show = async (context) => {
    const { manifest, chosen } = context;
    const read = (key) =>
      Object.hasOwn(manifest.generated, key) ? Data.read(manifest.generated[key], key) : null;
    const targets = Data.rows(await read("targets"));
    const made = targets.filter((one) => one.cells);
    const last = targetsTable(targets);
    if (!made.length) {
      return {
        ofNoMachine: true,
        answer: "No code was generated for any target yet.",
        content: [last],
      };
    }
    const target = made.find((each) => each.target === chosen.target) ?? most(made);
    const { points, groups } = await read(`target/${target.target}`);
    const breaks = await read("graph_breaks");
    const phases = [...new Set(groups.map((group) => group.phase))];
    const phase = phases.includes(chosen.phase) ? chosen.phase : phases[0];
    const modes = groups.filter((group) => group.phase === phase);
    const group = modes.find((each) => each.mode === chosen.mode) ?? modes[0];
    const first = FIRST.findLast((name) => group.counts.includes(name)) ?? group.counts[0];
    const count = group.counts.includes(chosen.count) ? chosen.count : first;
    Object.assign(chosen, { target: target.target, phase, mode: group.mode, count });
    const rows = Data.rows(group);
    const changes = Data.rows(group.changes);
    const name = `${target.target} ${phase} ${group.mode}`;
    const cells = new Set(rows.map((row) => row.cell));
    const gaps =
      rows.length < cells.size * points.length
        ? ` Not every cell was counted in every ${manifest.noun}: a change lies after the mark before it.`
        : "";
    return {
      title: `What is generated for ${target.device || target.target}?`,
      ofNoMachine: true,
      choices: [
        choice(
          "target",
          "Target",
          made.map(({ target, device }) => [target, device ? `${target} (${device})` : target]),
          target.target,
        ),
        choice("phase", "Phase", phases, phase),
        choice(
          "mode",
          "Mode",
          modes.map((each) => each.mode),
          group.mode,
        ),
        choice("count", "Count", group.counts, count),
      ],
      answer: group.sentence,
      content: [
        `Exact counts of the code that each release writes for the GPU, the same on all machines. Nothing ran on the GPU, and nothing was timed.${gaps}`,
        count ? history(context, points, rows, changes, count, name) : null,
        byPoint(context, group, name),
        changed(context, changes, name),
        failures(context, rows, name),
        section(
          "graph-breaks",
          breaks.title,
          breaks.sentence,
          sheet("PyTorch's own tables, and the code here.", breaks),
        ),
        last,
      ],
    };
  };
  Page.view = Object.assign(show, { withoutMachine: true });

  const most = (targets) => targets.reduce((a, b) => (b.cells > a.cells ? b : a));

  // A cell over the points: what a picture and a table of one count need.
  function series(rows, changes, count) {
    const differences = new Map(
      changes
        .filter((change) => change.count === count)
        .map((change) => [`${change.point} ${change.cell}`, change]),
    );
    const cells = new Map();
    for (const row of rows) {
      if (!cells.has(row.cell)) cells.set(row.cell, new Map());
      const change = differences.get(`${row.point} ${row.cell}`);
      cells.get(row.cell).set(row.point, { row, value: row[count], change });
    }
    return cells;
  }

  function words({ row, value, change }, label) {
    if (row.outcome !== "ok") return `${row.outcome}: ${row.reason}`;
    if (!change) return Words.count(value);
    return `${Words.count(value)}: ${change.difference}, ${Words.count(change.old)} with ${label(change.before)}`;
  }

  // A picture of more lines is too high to read. Those that changed come first.
  const MOST_DRAWN = 40;

  function history({ label, manifest }, points, rows, changes, count, name) {
    const cells = series(rows, changes, count);
    const moved = ([, by]) => [...by.values()].some(({ change }) => change);
    const drawn = [...cells].sort((one, other) => moved(other) - moved(one)).slice(0, MOST_DRAWN);
    const some =
      drawn.length < cells.size
        ? ` ${drawn.length} of ${cells.size} cells, those first whose count changed.`
        : "";
    const lines = drawn.map(([cell, by]) => ({
      label: cell,
      values: points.map((point) => {
        const here = by.get(point);
        if (!here) return null;
        return {
          value: here.row.outcome === "ok" ? here.value : null,
          kind: here.row.outcome === "ok" ? (here.change?.difference ?? "same") : "gap",
          words: `${cell}, ${label(point)}: ${words(here, label)}`,
        };
      }),
    }));
    // The legend names them only where they are.
    const kinds = new Set(lines.flatMap(({ values }) => values.map((one) => one?.kind)));
    const rare = ["new", "gone"].filter((kind) => kinds.has(kind));
    const text = (here) => {
      if (!here) return "";
      if (here.row.outcome !== "ok") return { text: here.row.outcome, kind: "gap" };
      if (!here.change) return Words.count(here.value);
      const { difference, old } = here.change;
      return {
        text: `${Words.count(here.value)} (${difference}, was ${Words.count(old)})`,
        kind: KINDS[difference] ?? "unknown",
      };
    };
    return section(
      "history",
      `By ${manifest.noun}: ${count}`,
      Draw.figure(
        `${count} of each cell by ${manifest.noun}: the number stands where it is the first one or has changed. Each line has a scale of its own.${some}`,
        Draw.counts(lines, points.map(label), {
          same: "not changed",
          fewer: "fewer",
          more: "more",
          gap: "no code",
          ...Object.fromEntries(rare.map((kind) => [kind, kind])),
        }),
      ),
      table(
        `${count} of each cell by ${manifest.noun}. A change is one against the last ${manifest.noun} before that has code of the cell.`,
        [
          { title: "cell", value: ([cell]) => cell, sort: ([cell]) => cell },
          ...points.map((point) =>
            number(
              label(point),
              ([, by]) => text(by.get(point)),
              ([, by]) => by.get(point)?.value,
            ),
          ),
        ],
        [...cells],
      ),
      downloads(`generated ${name}`, rows),
    );
  }

  function byPoint({ label, manifest }, group, name) {
    const { columns } = group.by_point;
    const rows = Data.rows(group.by_point);
    return section(
      "points",
      `Which ${manifest.noun} changed what?`,
      table(
        `Cells by ${manifest.noun}. Compared: with the ${manifest.noun} directly before, if it has code of the cell; else with an older one, and then the change may be that of a ${manifest.noun} between. Changed: at least one count differs.`,
        columns.map((column) => ({
          title: column === "point" ? manifest.noun : column.replaceAll("_", " "),
          number: column !== "point",
          value: (row) => (column === "point" ? label(row.point) : String(row[column])),
        })),
        rows,
      ),
      downloads(`changes by ${manifest.noun} ${name}`, rows),
    );
  }

  function changed({ label, manifest }, changes, name) {
    return section(
      "changes",
      "Every change",
      table(
        "Every count that changed.",
        [
          { title: "cell", value: (row) => row.cell, sort: (row) => row.cell },
          { title: "count", value: (row) => row.count, sort: (row) => row.count },
          { title: "from", value: (row) => label(row.before) },
          { title: manifest.noun, value: (row) => label(row.point) },
          Page.figure("was", "old", Words.count),
          Page.figure("is", "new", Words.count),
          {
            title: "difference",
            value: (row) => ({ text: row.difference, kind: KINDS[row.difference] ?? "unknown" }),
          },
        ],
        changes,
      ),
      downloads(`every change ${name}`, changes),
    );
  }

  function failures({ label, manifest }, rows, name) {
    const failed = rows.filter((row) => row.outcome !== "ok");
    return section(
      "failures",
      "Cells without code",
      table(
        "The cells without code, with the reasons.",
        [
          { title: "cell", value: (row) => row.cell, sort: (row) => row.cell },
          { title: manifest.noun, value: (row) => label(row.point) },
          { title: "outcome", value: (row) => row.outcome },
          { title: "reason", value: (row) => row.reason },
        ],
        failed,
      ),
      downloads(`without code ${name}`, failed),
    );
  }

  function targetsTable(targets) {
    return section(
      "targets",
      "The targets",
      table(
        "The GPUs that code can be generated for, and how many cells have been.",
        [
          { title: "target", value: (row) => row.target },
          { title: "GPU", value: (row) => row.device },
          number("cells", (row) => Words.count(row.cells)),
          number("without code in a release", (row) => Words.count(row.without_code)),
        ],
        targets,
      ),
    );
  }
})();
