// All models of one machine and point: times, ratios, compile costs.
"use strict";

(() => {
  const { section, table, number, COLUMNS, Words, downloads, choice } = Page;
  const MOST_DRAWN = 60;
  const KINDS = ["faster", "slower", "no gain", "cannot tell"];

  Page.view = async (context) => {
    const { machine, at, chosen, cell } = context;
    // Eager over eager decides nothing, measured or failed.
    const every = (await Data.figures(machine, at)).filter(
      (row) =>
        (row.mode !== "eager" || row.baseline !== "eager") && (row.verdict || row.outcome !== "ok"),
    );
    const questions = context.manifest.groups.filter((name) =>
      every.some((row) => row.question === name),
    );
    const question = questions.includes(chosen.question) ? chosen.question : questions[0];
    const asked = every.filter((row) => row.question === question);
    const sizes = [...new Set(asked.map((row) => row.batch_size))]
      .sort((one, other) => one - other)
      .map(String);
    const batch = sizes.includes(chosen.batch) ? chosen.batch : "all";
    Object.assign(chosen, { question, batch });
    const rows = asked
      .filter((row) => batch === "all" || String(row.batch_size) === batch)
      .sort((one, other) => (one.ratio ?? Infinity) - (other.ratio ?? Infinity));
    const numbers = rows.filter((row) => row.ratio !== null);
    const half = MOST_DRAWN / 2;
    const drawn =
      numbers.length > MOST_DRAWN ? [...numbers.slice(0, half), ...numbers.slice(-half)] : numbers;
    const name = (row) => (batch === "all" ? `${row.label}, batch ${row.batch_size}` : row.label);
    const marks = drawn.map((row) => context.mark(row, "ratio", name(row), row.mode));
    const some =
      drawn.length < numbers.length
        ? ` The picture shows ${drawn.length} of ${numbers.length} cells: those with the largest gain and those with the smallest.`
        : "";
    const counts = KINDS.map(
      (kind) => `${kind} ${rows.filter((row) => row.verdict === kind).length}`,
    );
    const failed = rows.filter((row) => row.outcome !== "ok").length;
    if (failed) counts.push(`without numbers ${failed}`);
    const ends = await context.document(`ends/${at}`);
    return {
      title: `All models: does it pay? ${context.title(at)}`,
      choices: [
        Page.choosePoint(context),
        choice("question", "Question", questions, question ?? ""),
        choice("batch", "Batch size", ["all", ...sizes], batch),
      ],
      answer: questions.length
        ? `${Words.plural(rows.length, "cell")} of ${context.title(at)}, ${question}, batch size ${batch}: ${counts.join(", ")}.`
        : "Nothing was compiled.",
      content: [
        section(
          "ratios",
          "Ratios",
          Draw.figure(
            `Time in the mode over time of the baseline, with its 95 % interval.${some}`,
            Draw.ratios(marks, Page.modesOf(drawn), "time ratio (below 1: faster)"),
          ),
          table(
            "Every cell. Ratio: below 1 is a gain; the brackets hold the 95 % interval over launches.",
            [
              { title: "cell", value: (row) => cell(row.cell), sort: (row) => row.cell },
              ...(machine.machines
                ? [{ title: "machine", value: (row) => row.machine, sort: (row) => row.machine }]
                : []),
              COLUMNS.ratio,
              COLUMNS.mode,
              COLUMNS.baseline(rows),
              COLUMNS.cold,
              COLUMNS.warm,
              COLUMNS.paysAfter,
            ],
            rows,
          ),
          downloads(`models ${machine.name} ${at} ${question} batch ${batch}`, rows),
        ),
        ends ? bothEnds(context, ends) : null,
      ],
    };
  };

  function bothEnds(context, document) {
    const { machine, at, cell } = context;
    const rows = Data.rows(document);
    const lines = rows.flatMap((row) => ["default", "settled"].map((end) => ({ row, end })));
    const of = ({ row, end }, name) => row[`${end}_${name}`];
    const only = (line, text) => (line.end === "default" ? text : "");
    return section(
      "heap",
      "Both ends of the heap",
      "On a CPU the state of the heap decides, too. Default: malloc as a script gets it. Settled: malloc keeps its memory, " +
        `as with ${document.remedy}. ` +
        "Malloc's share is of the time with the default heap.",
      table(
        "Times, ratio and page faults a call with the default and the settled heap.",
        [
          {
            title: "cell",
            value: (line) => cell(line.row[line.end === "default" ? "cell_default" : "cell"]),
          },
          { title: "heap", value: (line) => line.end },
          number("eager time", (line) => Words.duration(of(line, "eager_s"))),
          number("mode time", (line) => Words.duration(of(line, "mode_s"))),
          number("ratio", (line) => Words.interval(line.row, `${line.end}_ratio`)),
          number("faults eager", (line) => only(line, Words.count(line.row.default_eager_faults))),
          number("faults mode", (line) => only(line, Words.count(line.row.default_mode_faults))),
          number("malloc's share: eager", (line) =>
            only(line, Words.percent(line.row.eager_share)),
          ),
          number("share: mode", (line) => only(line, Words.percent(line.row.mode_share))),
        ],
        lines,
      ),
      downloads(`heap ${machine.name} ${at}`, rows),
    );
  }
})();
