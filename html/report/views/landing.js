// The first page: for one machine and point, who gains and who loses, since when, what changed, and
// what compiling costs.
"use strict";

(() => {
  const {
    section,
    table,
    number,
    COLUMNS,
    link,
    marked,
    paying,
    Words,
    downloads,
    choice,
    choose,
  } = Page;
  // Where to go from here: it stands in the page, and keeps its place below the headline.
  const start = document.getElementById("start");

  Page.view = async (context) => {
    const { at, chosen } = context;
    const overview = await context.document(`overview/${at}`);
    const questions = [...new Set(overview.groups.map((group) => group.question))];
    if (!questions.length) {
      return { answer: "Nothing was compiled." };
    }
    const question = questions.includes(chosen.question) ? chosen.question : questions[0];
    const groups = overview.groups.filter((group) => group.question === question);
    const group = groups.find((one) => one.batch === chosen.batch) ?? groups[0];
    // One size is all sizes: another page has chosen them.
    const all = chosen.batch === "all" && groups.length === 1;
    Object.assign(chosen, { question, batch: all ? "all" : group.batch });
    const batches = [...groups.map((one) => one.batch)].sort(
      (one, other) => (one === "all") - (other === "all") || one - other,
    );

    return {
      choices: [
        Page.choosePoint(context),
        choice("question", "Question", questions, question),
        choice("batch", "Batch size", batches, group.batch),
      ],
      answer: group.headline,
      content: [
        group.about,
        start,
        pays(context, group),
        small(context, overview.groups),
        ...(await since(context, question, group)),
        changed(context, overview.changes),
        cost(context, overview.cost),
        asked(context),
      ],
    };
  };

  // What else was measured: workloads that were made for one question, and are no models.
  function small(context, groups) {
    const { machine, at } = context.chosen;
    const firsts = groups.filter(
      (one, place) =>
        !one.of_models && groups.findIndex((other) => other.question === one.question) === place,
    );
    if (!firsts.length) return null;
    const best = (group) => group.modes.reduce((a, b) => (b.cells > a.cells ? b : a));
    return Page.make(
      "details",
      {},
      Page.make("summary", {}, "Small programs, each made for one question"),
      table(
        "Their mean ratios at the batch size with most cells. They are not in any mean over models.",
        [
          {
            title: "question",
            value: ({ question }) => link(question, "index.html", { machine, at, question }),
          },
          { title: "what is compared", value: ({ about }) => about },
          { title: "mode", value: (group) => best(group).mode },
          number("mean ratio", (group) => Words.bounds(best(group).mean)),
          number("faster", (group) => `${best(group).counts.faster} of ${best(group).cells}`),
        ],
        firsts,
      ),
    );
  }

  function asked({ manifest, chosen }) {
    const { machine, at } = chosen;
    const to = ([name, title, page]) => link(title, page, { machine, at, ask: name });
    return section(
      "asked",
      "What people ask",
      Page.make(
        "ul",
        {},
        ...manifest.questions.map((question) => Page.make("li", {}, to(question))),
      ),
    );
  }

  function pays(context, group) {
    const { machine, at, chosen, cell } = context;
    const rows = Data.rows(group);
    const modes = Page.modesOf(rows).filter((mode) => rows.some((row) => row.mode === mode));
    const models = new Map();
    for (const row of rows) {
      if (!models.has(row.label)) models.set(row.label, new Map());
      models.get(row.label).set(row.mode, row);
    }
    const marks = rows
      .filter((row) => row.ratio !== null)
      .map((row) => context.mark(row, "ratio", row.label, row.mode, `${row.label}, ${row.mode}`));
    const first = (by) => by.values().next().value;
    const some =
      models.size < group.models
        ? ` These are ${models.size} of ${group.models} models: the largest gains and the smallest.`
        : "";
    const caption =
      "Time in the mode over time of the baseline, with its 95 % interval: left of 1 is a gain.";
    return section(
      "pays",
      "Which models gain?",
      Draw.figure(
        caption + some,
        Draw.ratios(marks, Page.modesOf(rows), "time ratio (below 1: faster)"),
      ),
      table(
        `The time ratio of each model in each mode. Fastest: the mode that gains most, and gains that cannot be told from it.${some}`,
        [
          {
            title: "model",
            value: ([name, by]) => cell(first(by).cell, name),
            sort: ([name]) => name,
          },
          // A phone shows the first columns.
          ...modes.map((mode) => ({
            title: mode,
            value: ([, by]) => paying(by.get(mode)),
            sort: ([, by]) => by.get(mode)?.ratio,
          })),
          number(
            `${group.baseline} time`,
            ([, by]) => first(by).baseline_time,
            ([, by]) => first(by).eager_s,
          ),
        ],
        [...models],
      ),
      table(
        `The modes: geometric means, and how many cells gain.${group.alike ? "" : " Means of different cells do not compare: see All models."}`,
        [
          { title: "mode", value: (mode) => mode.mode },
          number("cells", (mode) => String(mode.cells)),
          number("mean ratio", (mode) => Words.bounds(mode.mean)),
          ...Object.keys(group.modes[0].counts).map((kind) =>
            number(kind, (mode) => String(mode.counts[kind])),
          ),
          number("without numbers", (mode) => String(mode.without)),
        ],
        group.modes,
      ),
      Page.make("p", {}, link("All models, with their times", "models.html", chosen)),
      downloads(`ratios ${machine.name} ${at} ${group.question} batch ${group.batch}`, rows),
    );
  }

  async function since(context, question, group) {
    const { machine, manifest, label, chosen } = context;
    const document = await context.document(`means/${question}`);
    const modes = Object.entries(document?.batches?.[group.batch] ?? {});
    if (!modes.length) {
      return [
        section(
          "since",
          "Since when?",
          machine.points.length < 2
            ? `Only one ${manifest.noun} was measured here, so there is no history.`
            : `No mode was measured in two ${manifest.noun}s with a cell that has a number in all of them, so there is no history.`,
        ),
      ];
    }
    const ordered = modes.sort(([, one], [, other]) => other.cells - one.cells);
    const models = Data.rows(group).map((row) => row.cell.split(",")[0]);
    const told = Page.told(context, { models, question });
    return ordered.map(([mode, means], place) => {
      const rows = Data.rows(means);
      const points = rows.map((row) => row.point);
      const series = (name, title = name) => Page.line(title, rows, name, points);
      // Eager in another precision is compared, too.
      const compared = mode.split(":")[0] === "eager" ? "in the mode" : "compiled";
      const labels = points.map(label);
      const open = (index) => choose({ at: points[index] });
      const marks = Page.marks(told, points);
      const caption = `Geometric means over ${Words.plural(means.cells, "cell")}, measured at every point, mode ${mode}; bands: 95 %.`;
      return section(
        place ? `since-${place}` : "since",
        place ? `Since when? Mode ${mode}` : "Since when?",
        means.sentence,
        Draw.figure(
          `Ratio, time in the mode over its baseline. ${caption}`,
          Draw.lines(labels, [series("ratio")], "time ratio", caption, open, marks),
        ),
        Draw.figure(
          `Times, relative to ${labels[0]}. ${caption} The bands include the drift between measurements.`,
          Draw.lines(
            labels,
            [series("eager"), series("compiled", compared)],
            `time, ${labels[0]} = 1`,
            caption,
            open,
            marks,
          ),
        ),
        place ? null : Page.stories(told),
        table(
          `Geometric means by ${manifest.noun}; times are relative to ${labels[0]}.`,
          [
            {
              title: manifest.noun,
              value: (row) => link(label(row.point), "index.html", { ...chosen, at: row.point }),
            },
            Page.interval("eager", "eager"),
            Page.interval(compared, "compiled"),
            Page.interval("ratio", "ratio"),
          ],
          rows,
        ),
        downloads(`means ${machine.name} ${question} batch ${group.batch} ${mode}`, rows),
      );
    });
  }

  function changed(context, changes) {
    const { machine, manifest, at, label, cell } = context;
    if (!changes) return null;
    const rows = Data.rows(changes);
    const compare = link(`Compare ${label(changes.before)} and ${label(at)}`, "compare.html", {
      machine: machine.name,
      before: changes.before,
      after: at,
      at,
    });
    return section(
      "changed",
      `What changed since ${label(changes.before)}?`,
      changes.sentence || "No cell has numbers of both that can be compared.",
      !changes.sentence
        ? null
        : rows.length
          ? table(
              "The largest single changes beyond noise: after over before, above 1 is slower or more. The comparison groups them by how sure they are.",
              [
                { title: "cell", value: (row) => cell(row.cell) },
                { title: "figure", value: (row) => row.figure },
                Page.interval("after/before", "factor"),
                { title: "difference", value: (row) => marked(row.verdict, row.verdict) },
                { title: "time that changed", value: (row) => row.moved },
              ],
              rows,
            )
          : "Nothing changed beyond noise.",
      changes.sentence && manifest.releases.includes(Page.releasePage(at))
        ? Page.make(
            "p",
            {},
            link(
              `PyTorch ${Page.minor(at)}: what its newest patch changed as a whole`,
              Page.releasePage(at),
              { machine: machine.name },
            ),
          )
        : null,
      Page.make("p", {}, compare),
      downloads(`changes ${machine.name} ${changes.before} ${at}`, rows),
    );
  }

  function cost(context, document) {
    const { machine, at, chosen, cell } = context;
    if (!document) return null;
    const rows = Data.rows(document);
    return section(
      "costs",
      "What does compiling cost?",
      document.sentence,
      table(
        "The longest compiles. Cold: no cache. Warm: with Inductor's disk cache.",
        [
          { title: "cell", value: (row) => cell(row.cell) },
          COLUMNS.cold,
          COLUMNS.warm,
          COLUMNS.paysAfter,
        ],
        rows,
      ),
      Page.make("p", {}, link("All compiles, by phase", "cost.html", chosen)),
      downloads(`costs ${machine.name} ${at}`, rows),
    );
  }
})();
