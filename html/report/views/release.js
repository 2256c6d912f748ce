// The picture of a release's page: what it changed on average. The page itself says the rest.
"use strict";

(() => {
  const { sheet, Words } = Page;
  const KINDS = ["better", "worse", "not changed", "cannot tell"];

  Page.view = async ({ manifest, label }) => {
    const { machine: name, before, after } = document.getElementById("view").dataset;
    const machine = manifest.machines.find((one) => one.name === name);
    const pair = await Data.of(machine, `pairs/${before}/${after}`);
    const href = Page.address("compare.html", { machine: name, before, after });
    const marks = Data.rows(pair.means)
      .filter((row) => row.mean !== null)
      .map((row) => ({
        label: row.figure,
        series: row.judged,
        value: row.mean,
        low: row.mean_low,
        high: row.mean_high,
        href,
        words: `${row.figure}: ${Words.interval(row, "mean")}`,
      }));
    const over = `${label(after)} over ${label(before)}`;
    return {
      ofNoMachine: true,
      content: [
        Draw.figure(
          `${over}, on average over ${pair.averaged}, on ${machine.title}, with 95 % intervals. Not changed: the whole interval is within 5 % of 1.`,
          Draw.ratios(marks, KINDS, `${over} (above 1: slower, or more)`),
        ),
        sheet(`Relative to ${label(before)}; above 1 is slower, or more memory.`, pair.whole),
      ],
    };
  };
})();
