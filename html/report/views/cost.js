// What compiling costs: cold and warm, by phase, and when it is paid back.
"use strict";

(() => {
  const { section, table, number, COLUMNS, PHASES, Words, downloads } = Page;
  const MOST_DRAWN = 40;

  Page.view = async (context) => {
    const { machine, at, cell } = context;
    const [overview, figures] = await Promise.all([
      context.document(`overview/${at}`),
      Data.figures(machine, at),
    ]);
    const rows = figures
      .filter((row) => row.users_compile && row.cold_compile_s !== null)
      .sort((one, other) => other.cold_compile_s - one.cold_compile_s);
    const names = Object.keys(PHASES);
    const bars = rows
      .slice(0, MOST_DRAWN)
      .map((row) => ({
        label: row.cell,
        parts: names.map((name) => row[`phase_${name}_s`] ?? 0),
        href: Page.address("cell.html", { machine: machine.name, at, cell: row.cell }),
        words: `${row.cell}: ${names.map((name) => `${PHASES[name]} ${Words.general(row[`phase_${name}_s`])} s`).join(", ")}`,
      }))
      .filter((bar) => bar.parts.some((part) => part > 0));
    const some =
      bars.length < rows.length
        ? `: ${bars.length} of ${rows.length} cells, the slowest first`
        : "";
    return {
      title: `What does compiling cost? ${context.title(at)}`,
      answer:
        overview?.cost?.sentence ??
        `No cell was compiled with this ${context.manifest.noun} on this machine.`,
      content: [
        "Cold: no cache. Warm: with Inductor's disk cache from an earlier process. Each cell has one cold compile, so its time has no interval.",
        section(
          "phases",
          "By phase",
          Draw.figure(
            `The seconds of the cold compile by phase${some}.`,
            Draw.stacks(
              bars,
              names.map((name) => PHASES[name]),
              "seconds of the cold compile",
            ),
          ),
          table(
            "Seconds lost to the compiler's import and to calls that compiled, at a cold and at a warm start; the phases are those of the cold start. Compiling pays after this number of calls, if the interval of the ratio is below 1. Seconds to pay, estimated: the cold compile, then these calls.",
            [
              { title: "cell", value: (row) => cell(row.cell), sort: (row) => row.cell },
              {
                ...COLUMNS.cold,
                value: (row) => ({ text: Words.seconds(row.cold_compile_s), slowed: row.slowdown }),
              },
              COLUMNS.warm,
              ...names.map((name) => Page.figure(PHASES[name], `phase_${name}_s`, Words.seconds)),
              COLUMNS.paysAfter,
              number(
                "seconds to pay",
                (row) => (row.break_even_state === "calls" ? Words.count(row.break_even_s) : ""),
                (row) => (row.break_even_state === "calls" ? row.break_even_s : null),
              ),
            ],
            rows,
          ),
          downloads(`costs ${machine.name} ${at}`, rows),
        ),
      ],
    };
  };
})();
