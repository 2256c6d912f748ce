// One cell: its history, every launch, what the compiler made, and the command that measures it
// again. Or a model: its cells. Or all models.
"use strict";

(() => {
  const {
    section,
    table,
    sheet,
    number,
    COLUMNS,
    PHASES,
    link,
    Words,
    downloads,
    stories,
    choose,
    make,
  } = Page;
  // A site may have hundreds of machines. The manifest has those first that measured most.
  const MOST_ASKED = 12;
  // Lines of a picture that can be told apart.
  const MOST_LINES = 5;

  Page.view = async (context) => {
    const { index, wanted } = context;
    if (wanted.cell) return ofCell(context, wanted.cell);
    if (wanted.model) return ofModel(context, wanted.model);
    const models = Object.keys(index.buckets);
    return {
      title: "One model, since when?",
      answer: `Measured on this machine: ${Words.plural(models.length, "model")}.`,
      content: [
        section(
          "models",
          "Models",
          listed(context, "Every model; each leads to its cells.", models),
        ),
      ],
    };
  };

  function listed({ chosen }, caption, names) {
    const value = (model) => link(model, "cell.html", { ...chosen, model });
    return table(caption, [{ title: "model", value, sort: (name) => name }], names);
  }

  async function ofModel(context, model) {
    const { machine, at, index, cell } = context;
    const known = Object.hasOwn(index.buckets, model);
    const like = Object.keys(index.buckets).filter((name) =>
      name.toLowerCase().includes(model.toLowerCase()),
    );
    if (!known && like.length === 1) return ofModel(context, like[0]);
    if (!known) {
      return {
        title: "One model, since when?",
        content: [
          section(
            "models",
            `Models with "${model}" in their name`,
            like.length
              ? listed(context, "Each leads to its cells.", like)
              : "No model of this machine has such a name.",
          ),
          elsewhere(await onOthers(context, model)),
        ],
      };
    }
    const bucket = index.buckets[model];
    const [figures, histories] = await Promise.all([
      context.document(`figures/${at}/${bucket}`),
      context.document(`lines/${bucket}`),
    ]);
    const rows = Data.rows(figures).filter((row) => row.workload === model);
    return {
      title: model,
      answer: verdict(context, model, rows),
      content: [
        fastest(model, rows, histories),
        section(
          "cells",
          "Cells",
          ...pictures(context, model, rows, histories),
          table(
            "Each cell leads to its history and its launches.",
            [
              { title: "cell", value: (row) => cell(row.cell), sort: (row) => row.cell },
              // A phone shows the first columns.
              COLUMNS.ratio,
              COLUMNS.mode,
              COLUMNS.baseline(rows),
              { title: "question", value: (row) => row.question },
            ],
            rows,
          ),
          downloads(`${model} ${machine.name} ${at}`, rows),
        ),
        elsewhere(await onOthers(context, model)),
      ],
    };
  }

  const asUsersRun = (rows) =>
    rows.filter((row) => !row.variant && row.mode !== "eager" && row.ratio !== null);
  const drawn = (rows) => asUsersRun(rows).slice(0, MOST_LINES);

  // The answer for a model: its fastest and its slowest cell as a user runs it.
  function verdict(context, model, rows) {
    const title = context.title(context.at);
    if (!rows.length) {
      return `${model} was not measured with ${title}; choose another ${context.manifest.noun}.`;
    }
    const found = asUsersRun(rows).sort((one, other) => one.ratio - other.ratio);
    if (!found.length) return `${Words.plural(rows.length, "cell")} of ${model} with ${title}.`;
    const said = (row) =>
      `${Words.interval(row, "ratio")} of eager's time (${row.cell.slice(model.length + 2)}: ${row.verdict})`;
    const worst = found.length > 1 ? `, and at worst ${said(found.at(-1))}` : "";
    const best = worst ? "at best " : "";
    return `${title}: a compiled call of ${model} takes ${best}${said(found[0])}${worst}.`;
  }

  // Which release is the fastest for each cell of the history; null without two of them.
  function fastest(model, rows, histories) {
    const found = drawn(rows).filter(({ cell }) => histories[cell]?.fastest);
    const said = ({ cell }) => `${cell.slice(model.length + 2)}: ${histories[cell].fastest}`;
    return found.length
      ? make("ul", { class: "fastest" }, ...found.map((row) => make("li", {}, said(row))))
      : null;
  }

  // The points with one of the rows, also with a failed one. A point that was never asked for is left
  // out: it would part the line of a model that few points have.
  const measured = (machine, rows) =>
    machine.points.filter((point) => rows.some((row) => row.point === point));

  // All cells of a point, and the history of those that a user runs.
  function pictures(context, model, rows, histories) {
    const { machine, at, label } = context;
    // A mistake that is made on purpose, and eager over eager, are no answers.
    const marks = rows
      .filter((row) => row.verdict && row.ratio !== null && row.question !== "protocol")
      .map((row) => context.mark(row, "ratio", row.cell.slice(model.length + 2), "ratio"));
    const ofUsers = drawn(rows);
    const known = ofUsers.map(({ cell }) => Data.rows(histories[cell]));
    const points = measured(machine, known.flat());
    const lines = ofUsers.map(({ cell }, place) =>
      Page.line(cell.slice(model.length + 2), known[place], "ratio", points),
    );
    const caption = `${model}: time ratio by ${context.manifest.noun}; below 1 is a gain.`;
    const told = Page.told(context, { models: [model] });
    const open = (place) => choose({ at: points[place] });
    return [
      Draw.figure(
        `${model} with ${context.title(at)}: time over that of the baseline, with its 95 % interval.`,
        Draw.ratios(marks, ["ratio"], "time ratio (below 1: faster)"),
      ),
      Draw.figure(
        caption,
        Draw.lines(points.map(label), lines, "time ratio", caption, open, Page.marks(told, points)),
      ),
      stories(told),
    ];
  }

  // The cells of a model that this machine has not measured and another one has.
  async function onOthers({ manifest, machine }, model) {
    // Another machine whose files cannot be read is no fault of this page.
    const cellsOf = (one) => namesOn(one).catch(() => []);
    const namesOn = async (one) => {
      const { buckets } = await Data.index(one);
      if (!Object.hasOwn(buckets, model)) return [];
      const histories = await Data.of(one, `lines/${buckets[model]}`);
      return Object.keys(histories ?? {}).filter((name) => histories[name].workload === model);
    };
    const mine = new Set(await namesOn(machine));
    const others = manifest.machines.filter((one) => one !== machine).slice(0, MOST_ASKED);
    const found = await Promise.all(
      others.map(async (other) => (await cellsOf(other)).map((name) => ({ name, machine: other }))),
    );
    return found.flat().filter(({ name }) => !mine.has(name));
  }

  function elsewhere(found) {
    return section(
      "elsewhere",
      "On other machines",
      table(
        "Cells that this machine has not measured. Times of two machines are not compared.",
        [
          {
            title: "cell",
            value: ({ name, machine }) =>
              link(name, "cell.html", { machine: machine.name, cell: name }),
            sort: ({ name }) => name,
          },
          {
            title: "machine",
            value: ({ machine }) => machine.title,
            sort: ({ machine }) => machine.title,
          },
        ],
        found,
      ),
    );
  }

  async function ofCell(context, name) {
    const { machine, index } = context;
    // A name has no comma.
    const model = name.split(",")[0];
    const bucket = Object.hasOwn(index.buckets, model) ? index.buckets[model] : null;
    const histories = bucket === null ? null : await context.document(`lines/${bucket}`);
    if (!histories || !Object.hasOwn(histories, name)) {
      const others = (await onOthers(context, model)).filter((one) => one.name === name);
      const remedy = others.length ? "Another machine has them." : "Find another model above.";
      return {
        title: "One model, since when?",
        choices: [],
        answer: `${machine.title} has no results of the cell "${name}". ${remedy}`,
        content: [elsewhere(others)],
      };
    }
    const history = histories[name];
    const rows = Data.rows(history);
    const points = rows.map((row) => row.point);
    const at = points.includes(context.at) ? context.at : points.at(-1);
    Object.assign(context.chosen, { at, cell: name });
    const [launches, figures] = await Promise.all([
      context.document(`launches/${at}/${bucket}`),
      context.document(`figures/${at}/${bucket}`),
    ]);
    const detail = launches.cells[name];
    const figure = Data.rows(figures).find((one) => one.cell === name);
    const end = history.other_end;
    const other = end ? histories[end] : null;
    return {
      title: name,
      choices: [Page.choosePoint({ ...context, at }, points)],
      answer: answer(context, history, figure, at),
      content: [
        history.since,
        history.fastest,
        history.machine
          ? make("p", {}, "All of this cell was measured on ", make("code", {}, history.machine))
          : "",
        make(
          "p",
          {},
          link(`All cells of ${history.workload}`, "cell.html", {
            machine: machine.name,
            at,
            model: history.workload,
          }),
          ...(end ? ["; ", context.cell(end, `the other end of the heap: ${end}`, at)] : []),
        ),
        ofHistory(context, name, history, rows, other),
        ofLaunches(context, name, history.baseline, detail, at),
        ofParts(detail.parts),
        paid(history, figure),
        compiled(context, detail),
        environment(launches, detail),
        again(detail),
      ],
    };
  }

  function answer(context, history, row, at) {
    const title = `With ${context.title(at)} on ${context.machine.title}: `;
    if (row.outcome !== "ok") return `${title}${row.outcome}${row.reason && `: ${row.reason}`}.`;
    if (!history.compiles) return `${title}${Words.duration(row.eager_s)} a ${history.timed}.`;
    return `${title}${Words.duration(row.mode_s)} a ${history.timed}; ${history.baseline} takes ${Words.duration(
      row.eager_s,
    )}. The ratio is ${Words.interval(row, "ratio")}: ${row.verdict}.`;
  }

  function ofHistory(context, name, history, rows, other) {
    const { machine, label, manifest, cell } = context;
    const others = other ? Data.rows(other) : [];
    const points = measured(machine, [...rows, ...others]);
    const labels = points.map(label);
    const series = (of, column, title, factor) => Page.line(title, of, column, points, factor);
    const open = (place) => {
      if (rows.some((row) => row.point === points[place])) choose({ at: points[place] });
    };
    const [here, there] =
      other && history.other_end.includes("default-heap")
        ? ["settled heap", "default heap"]
        : ["default heap", "settled heap"];
    const named = (title, heap) => (other ? `${title}, ${heap}` : title);
    const longest = Math.max(...[...rows, ...others].flatMap((row) => [row.eager_s, row.mode_s]));
    const [unit, scale] = Words.unit(longest);
    const times = [series(rows, "eager_s", named(history.baseline, here), scale)];
    const ratios = [series(rows, "ratio", named("ratio", here))];
    if (history.compiles) times.push(series(rows, "mode_s", named(history.mode, here), scale));
    if (other) {
      times.push(series(others, "eager_s", named(history.baseline, there), scale));
      if (history.compiles) times.push(series(others, "mode_s", named(history.mode, there), scale));
      ratios.push(series(others, "ratio", named("ratio", there)));
    }
    const told = Page.told(context, { models: [history.workload], question: history.question });
    const marks = Page.marks(told, points);
    return section(
      "history",
      "History",
      Draw.figure(
        `${name}: time of a ${history.timed} by ${manifest.noun}; bands: 95 %, with the drift between measurements.`,
        Draw.lines(labels, times, `${unit} a ${history.timed}`, `${name}: times`, open, marks),
      ),
      history.compiles
        ? Draw.figure(
            `${name}: time ratio by ${manifest.noun}; below 1 is a gain.`,
            Draw.lines(labels, ratios, "time ratio", `${name}: ratio`, open, marks),
          )
        : null,
      stories(told),
      table(
        `Times, ratio and compile costs by ${manifest.noun}.`,
        [
          { title: manifest.noun, value: (row) => cell(name, label(row.point), row.point) },
          COLUMNS.ratio,
          COLUMNS.mode,
          COLUMNS.baseline([history]),
          COLUMNS.cold,
          COLUMNS.warm,
          COLUMNS.paysAfter,
        ],
        rows,
      ),
      downloads(
        `history ${name} ${machine.name}`,
        rows.map((row) => ({ cell: name, ...row })),
      ),
    );
  }

  function ofParts(parts) {
    if (!parts) return null;
    const bars = Data.rows(parts.bars);
    return section(
      "parts",
      "What the difference is made of",
      ...parts.sentences,
      Draw.figure(
        "Milliseconds of both calls, by operators and kernels.",
        Draw.stacks(
          ["eager", "compiled"].map((side) => ({
            label: side,
            parts: bars.map((bar) => bar[`${side}_s`] * 1e3),
            words: bars.map((bar) => `${bar.part} ${Words.duration(bar[`${side}_s`])}`).join(", "),
          })),
          bars.map((bar) => bar.part),
          "milliseconds a call",
        ),
      ),
      sheet(
        "Operators of the model and the kernels that compute them; then what is in no kernel.",
        parts,
      ),
    );
  }

  function ofLaunches(context, name, baseline, detail, at) {
    const rows = Data.rows(detail);
    const timed = rows.filter((row) => row.ratio !== null);
    const note = (row) =>
      row.set_aside || (row.outcome === "ok" ? "counts" : row.reason || row.outcome);
    const group = (column, label, words) => ({
      label,
      values: timed.map((row) => ({
        value: row[column],
        faint: Boolean(row.set_aside),
        words: `launch ${row.process}: ${words(row)} (${note(row)})`,
      })),
    });
    const groups = [
      group("eager_s", baseline, (row) => Words.duration(row.eager_s)),
      group("mode_s", "mode", (row) => Words.duration(row.mode_s)),
      group("ratio", "ratio", (row) => Words.fixed(row.ratio, 4)),
    ];
    return section(
      "launches",
      `Every launch with ${context.title(at)}`,
      ...detail.text,
      timed.length > 1
        ? Draw.figure(
            "The spread of the launches: each mark is the median of one launch, relative to the median of all. Hollow marks do not count.",
            Draw.dots(groups, "difference from the median launch"),
          )
        : null,
      table(
        "Each launch: the medians over its pairs of turns. Load: the share of the processors that other processes used. Calibration: the time of a fixed loop, which takes longer while another guest of the host uses the same cores. Page faults: of a call.",
        [
          { title: "launch", value: (row) => String(row.process) },
          { title: "start", value: (row) => row.start },
          Page.figure(`${baseline} time`, "eager_s", (value) => Words.duration(value, 4)),
          Page.figure("mode time", "mode_s", (value) => Words.duration(value, 4)),
          Page.figure("ratio", "ratio", (value) => Words.fixed(value, 4)),
          number("first call s", (row) => Words.general(row.first_call_s)),
          number("compile s", (row) => Words.general(row.compile_s)),
          number("load", (row) =>
            row.others_share === null ? "-" : `${(row.others_share * 100).toFixed(1)}%`,
          ),
          number("calibration us", (row) =>
            row.yardstick_s === null ? "-" : Words.fixed(row.yardstick_s * 1e6, 0),
          ),
          number(`faults: ${baseline}, mode`, (row) =>
            row.mode_faults === null
              ? "-"
              : `${Words.count(row.eager_faults)}, ${Words.count(row.mode_faults)}`,
          ),
          { title: "heap", value: (row) => row.heap || "not known" },
          { title: "note", value: note },
        ],
        rows,
      ),
      downloads(
        `launches ${name} ${context.machine.name} ${at}`,
        rows.map((row) => ({ [context.manifest.noun]: at, cell: name, ...row })),
      ),
    );
  }

  function paid({ baseline, question }, row) {
    if (!row || row.cold_compile_s === null || row.mode_s === null) return null;
    // These cells have faults of timing on purpose.
    if (question === "protocol") return null;
    const what = baseline === "eager" ? "Compiling" : `The mode, instead of ${baseline},`;
    const even = row.break_even_state === "calls" ? row.break_even_calls : null;
    // From where the compiled model has taken some four times as long, to well beyond break-even.
    const dearest = Math.max(row.cold_compile_s, row.warm_compile_s ?? 0);
    const first = Math.max(
      1,
      Math.round(Math.min(row.cold_compile_s, row.warm_compile_s ?? Infinity) / (4 * row.eager_s)),
    );
    const last = Math.max(10 * (even ?? 0), (100 * dearest) / row.eager_s, 100 * first);
    const calls = Array.from({ length: 80 }, (_, place) => first * (last / first) ** (place / 79));
    // By the ratio of pairs: two times have drifted, and may have another quotient.
    const { ratio } = row;
    const mode_s = row.eager_s * ratio;
    const over = (compile) =>
      calls.map((count) => (compile + count * mode_s) / (count * row.eager_s));
    const series = [
      { name: baseline, values: calls.map(() => 1) },
      { name: "compiled, cold", values: over(row.cold_compile_s) },
    ];
    if (row.warm_compile_s !== null)
      series.push({ name: "compiled, warm", values: over(row.warm_compile_s) });
    const words =
      row.break_even_state === "never"
        ? `${what} never pays: compiled calls are slower.`
        : even === null
          ? "The measurement does not decide whether this pays: the curves may never go below 1."
          : `${what} pays after ${Words.paysAfter(row)}: about ${Words.general(Number(row.break_even_s.toPrecision(2)))} s after the first call begins.`;
    return section(
      "pays",
      "When has compiling paid?",
      words,
      Draw.figure(
        `Time of all calls so far, compiling included, over the time of the same calls in ${baseline}. Compiling has paid where a curve is below 1.`,
        Draw.curves(calls, series, "calls", `time, ${baseline} = 1`, "break-even", [
          Math.min(0.8, 0.9 * ratio),
          Math.max(4, 1.2 * ratio),
        ]),
      ),
      table(
        "Seconds from the first call to the end of some calls.",
        [
          { title: "calls", value: (count) => Words.count(count) },
          number(`${baseline} s`, (count) => Words.general(count * row.eager_s)),
          number("cold s", (count) => Words.general(row.cold_compile_s + count * mode_s)),
          ...(row.warm_compile_s === null
            ? []
            : [number("warm s", (count) => Words.general(row.warm_compile_s + count * mode_s))]),
        ],
        [...new Set([1, 10, 100, 1000, 10000, ...(even === null ? [] : [even])])].sort(
          (one, other) => one - other,
        ),
      ),
    );
  }

  function compiled(context, detail) {
    const made = detail.compiled;
    if (!made) return null;
    const facts = Data.rows(made.facts);
    const phases = Object.keys({ ...PHASES, ...made.phases })
      .filter((name) => made.phases[name] > 0)
      .map((name) => [PHASES[name] ?? name, made.phases[name]]);
    const list = (caption, rows) =>
      table(
        caption,
        [
          { title: "where", value: ([where]) => where || "-" },
          { title: "reason", value: ([, reason]) => reason },
        ],
        rows,
      );
    return section(
      "compiler",
      "What the compiler made",
      Draw.figure(
        "The phases of the cold compile, in seconds.",
        Draw.stacks(
          [
            {
              label: "cold compile",
              parts: phases.map(([, seconds]) => seconds),
              words: phases
                .map(([name, seconds]) => `${name} ${Words.general(seconds)} s`)
                .join(", "),
            },
          ],
          phases.map(([name]) => name),
          "seconds",
        ),
      ),
      table(
        "Seconds of the cold compile by phase.",
        [
          { title: "phase", value: ([name]) => name },
          number("seconds", ([, seconds]) => Words.general(seconds)),
        ],
        phases,
      ),
      table(
        "Graphs, guards, kernels and fusion at a cold start.",
        [
          { title: "property", value: (row) => row.property },
          number("value", (row) => Words.count(row.value)),
          { title: "why not known", value: (row) => row["why not known"] },
        ],
        facts,
      ),
      list("The places that break the graph.", made.breaks),
      list("Recompiles: the guard that failed.", made.recompiles),
      list(
        "The reasons why no CUDA graph was recorded.",
        made.skips.map((reason) => ["", reason]),
      ),
      downloads(
        `compiler ${context.chosen.cell} ${context.machine.name} ${context.chosen.at}`,
        facts,
      ),
    );
  }

  function environment(launches, detail) {
    if (detail.environment === null) return null;
    return section(
      "environment",
      "Environment",
      table(
        "Everything that can change a number and is not in the cell's name.",
        [
          { title: "property", value: ([name]) => name },
          { title: "value", value: ([, value]) => value },
        ],
        Object.entries(launches.environments[detail.environment]),
      ),
    );
  }

  function again(detail) {
    if (!detail.command) return null;
    return section(
      "again",
      "Measure it again",
      make("pre", { tabindex: "0" }, make("code", {}, detail.command)),
    );
  }
})();
