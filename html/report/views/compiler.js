// What the compiler captured and generated: graphs, breaks, guards, kernels.
"use strict";

(() => {
  const { section, table, Words, downloads } = Page;

  Page.view = async (context) => {
    const { machine, at, cell } = context;
    const made = await context.document(`compiler/${at}`);
    const rows = Data.rows(made);
    const fields = made.columns.slice(1, 1 + made.titles.length);
    const breaks = Data.rows(made.breaks);
    const skips = Data.rows(made.skips);
    const of = { title: "cell", value: (row) => cell(row.cell), sort: (row) => row.cell };
    return {
      title: `What does the compiler make? ${context.title(at)}`,
      answer: made.sentence,
      content: [
        "Fusion joins nodes of a graph into one kernel. This saves kernel launches and memory traffic.",
        rows.length
          ? section(
              "kernels",
              "Graphs and kernels",
              "A dash means: this release or device does not report the number. The page of the cell gives the reason.",
              table(
                "What the compiler captured and generated at a cold start.",
                [
                  of,
                  ...fields.map((field, place) =>
                    field.includes("bytes")
                      ? Page.figure(
                          made.titles[place].replace("bytes", "MB"),
                          field,
                          Words.megabytes,
                        )
                      : Page.figure(made.titles[place], field, Words.count),
                  ),
                ],
                rows,
              ),
              downloads(`compiler ${machine.name} ${at}`, rows),
            )
          : null,
        section(
          "breaks",
          "Graph breaks",
          table(
            "The places in the code that break the graph.",
            [
              of,
              { title: "where", value: (row) => row.where },
              { title: "reason", value: (row) => row.reason },
            ],
            breaks,
          ),
          downloads(`graph breaks ${machine.name} ${at}`, breaks),
        ),
        section(
          "skips",
          "CUDA graphs skipped",
          table(
            "The reasons why no CUDA graph was recorded.",
            [of, { title: "reason", value: (row) => row.reason }],
            skips,
          ),
        ),
      ],
    };
  };
})();
