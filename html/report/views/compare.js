// Two points of one machine compared, as `torchcompile-suite report` compares them.
"use strict";

(() => {
  const { section, table, number, sheet, marked, Words, downloads, stories, choice, make } = Page;
  const MOST_DRAWN = 40;

  Page.view = async (context) => {
    const { machine, wanted, at, label, chosen } = context;
    const points = machine.points;
    if (points.length < 2) {
      return {
        title: "What changed?",
        choices: [],
        answer: `Only one ${context.manifest.noun} was measured on this machine.`,
      };
    }
    const order = (point) => points.indexOf(point);
    let after = points.includes(wanted.after) ? wanted.after : at;
    let before = points.includes(wanted.before)
      ? wanted.before
      : points[Math.max(0, order(after) - 1)];
    if (order(before) > order(after)) [before, after] = [after, before];
    const equal = before === after ? `Both are ${label(after)}. ` : "";
    if (equal) [before, after] = points.slice(Math.max(0, order(after) - 1));
    Object.assign(chosen, { before, after });
    const options = points.map((point) => [point, label(point)]);
    // A choice keeps the other end as it is shown: the address may have the two in another order.
    const choices = [
      choice("before", "From", options.slice(0, -1), before, { after }),
      choice("after", "To", options.slice(1), after, { before }),
    ];
    const title = `What changed from ${label(before)} to ${label(after)}?`;
    const pair = await context.document(`pairs/${before}/${after}`);
    if (!pair) {
      return {
        title,
        choices,
        answer: `${equal}No cell has numbers of both that can be compared.`,
      };
    }
    return { title, choices, answer: equal || null, content: ofPair(context, pair, before, after) };
  };

  function ofPair(context, pair, before, after) {
    const { machine, cell, label } = context;
    const name = `${machine.name} ${before} ${after}`;
    const rows = Data.rows(pair.changes);
    const size = (row) => Math.abs(Math.log(row.factor));
    const changed = rows
      .filter((row) => row.verdict === "worse" || row.verdict === "better")
      .sort((one, other) => size(other) - size(one));
    const drawn = changed.slice(0, MOST_DRAWN).sort((one, other) => other.factor - one.factor);
    const some =
      drawn.length < changed.length
        ? ` The picture shows the ${drawn.length} largest of ${changed.length}.`
        : "";
    const marks = drawn.map((row) => {
      const [label, subject] = [`${row.figure}: ${row.cell}`, `${row.cell}, ${row.figure}`];
      return context.mark(row, "factor", label, row.verdict, subject, after);
    });
    const of = {
      title: "cell",
      value: (row) => cell(row.cell, row.cell, after),
      sort: (row) => row.cell,
    };
    const columns = [
      of,
      { title: "figure", value: (row) => row.figure, sort: (row) => row.figure },
      Page.interval("after/before", "factor"),
      {
        title: "difference",
        value: (row) => marked(row.verdict, row.verdict),
        sort: (row) => row.verdict,
      },
      { title: "time that changed", value: (row) => row.moved },
      { title: "round by round", value: (row) => (row.paired ? "yes" : "no") },
    ];
    const means = Data.rows(pair.means);
    const gaps = Data.rows(pair.gaps);
    const counts = Data.rows(pair.counts);
    const reasons = Data.rows(pair.reasons);
    const points = machine.points;
    const between = points.slice(points.indexOf(before) + 1, points.indexOf(after) + 1);
    const told = Page.told(context, { points: between });
    return [
      make("p", { class: "answer" }, pair.sentence),
      "At most 5% of the changes that are reported here are expected to be false discoveries. Not changed: the whole interval is within 5% of no change. Above 1 is slower, or more memory.",
      section("most", "What matters most", sheet("The largest changes beyond noise.", pair.most)),
      section(
        "changes",
        "Beyond noise",
        `${Words.plural(changed.length, "figure")} changed beyond noise, the largest change first.${some}`,
        Draw.figure(
          `The figures that changed: ${label(after)} over ${label(before)}, with 95 % intervals.`,
          Draw.ratios(marks, ["better", "worse"], "after over before"),
        ),
        table(
          "The figures that changed beyond noise. For a time ratio: which of the two times changed.",
          columns,
          changed,
        ),
        downloads(`changes ${name}`, rows),
      ),
      section(
        "means",
        "On average",
        table(
          `Geometric means over ${pair.averaged}.`,
          [
            { title: "figure", value: (row) => row.figure },
            Page.interval("geometric mean of after/before", "mean"),
            number("cells", (row) => String(row.cells)),
          ],
          means,
        ),
        downloads(`means ${name}`, means),
      ),
      section(
        "reasons",
        "Why",
        table(
          "Which parts of a call make its difference, of the cells whose calls were divided; each at 95 %, without regard to how many were looked at.",
          [
            { title: "cell", value: (row) => cell(row.cell, row.cell, after) },
            { title: "why its calls changed", value: (row) => row.says },
          ],
          reasons,
        ),
      ),
      section("stories", "Stories", stories(told)),
      section(
        "counts",
        "What the compiler made",
        table(
          "The counts that differ. Counts are exact: they have no noise.",
          [
            of,
            { title: "count", value: (row) => row.count, sort: (row) => row.count },
            Page.figure("before", "before", Words.count),
            Page.figure("after", "after", Words.count),
          ],
          counts,
        ),
        downloads(`counts ${name}`, counts),
      ),
      section(
        "all",
        "All figures",
        table("All figures of the cells that both have.", columns, rows),
      ),
      section(
        "gaps",
        "Not compared",
        table(
          "The cells that cannot be compared, with the reasons.",
          [
            { title: "cell", value: (row) => cell(row.cell, row.cell, after) },
            { title: "reason", value: (row) => row.reason },
          ],
          gaps,
        ),
      ),
    ];
  }
})();
