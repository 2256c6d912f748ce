// Whether one can trust the results: noise, drift, coverage, failures, environments, problems.
"use strict";

(() => {
  const { section, table, downloads, make, link } = Page;

  const show = async (context) => {
    const { machine, manifest, label, cell } = context;
    const left = Data.rows(await Data.read(manifest.problems, "problems"));
    const leftOut = section(
      "left-out",
      "Left out",
      table(
        "Result files, lines and measurements that are not shown.",
        ["where", "reason"].map((title) => ({ title, value: (row) => row[title] })),
        left,
      ),
      downloads("left out", left),
    );
    if (!machine) {
      const answer = "No machine has times. Start with: nox -s bench";
      return { ofNoMachine: true, answer, content: [leftOut] };
    }
    const trust = await context.document("trust");
    const failures = Data.rows(trust.failures);
    const coverage = Data.rows(trust.coverage);
    const environments = Data.rows(trust.environments);
    const point = { title: manifest.noun, value: (row) => label(row.point) };
    const plain = (name) => ({ title: name.replaceAll("_", " "), value: (row) => row[name] });
    const count = (name) => ({ ...plain(name), number: true });
    return {
      title: `Can I trust it? ${machine.title}`,
      choices: [],
      answer: trust.text,
      content: [
        section(
          "machine",
          "The machine",
          table(
            "Recorded at the first run on this machine. They never change: another machine gets another name.",
            [plain("property"), plain("value")],
            Data.rows(trust.facts),
          ),
        ),
        section(
          "coverage",
          "Coverage",
          table(
            "The core cells: those that asv run measures without options.",
            [
              point,
              ...["core_cells", "ok", "ended_otherwise", "not_measured", "unexplained"].map(count),
            ],
            coverage,
          ),
          downloads(`coverage ${machine.name}`, coverage),
        ),
        section(
          "failures",
          "Cells without numbers",
          failures.length
            ? table(
                "The cells that ended without numbers, with the reasons.",
                [
                  {
                    title: "cell",
                    value: (row) => cell(row.cell, row.cell, row.point),
                    sort: (row) => row.cell,
                  },
                  point,
                  plain("outcome"),
                  plain("reason"),
                ],
                failures,
              )
            : "None.",
          downloads(`failures ${machine.name}`, failures),
        ),
        section(
          "environments",
          "Environments",
          table(
            "The environments of the cells.",
            [
              point,
              ...["Python", "compiler", "allocator"].map(plain),
              count("threads"),
              plain("kernel"),
              plain("driver"),
              count("cells"),
            ],
            environments,
          ),
        ),
        leftOut,
        make("p", {}, link("The newest results as plain tables", "tables.html", {})),
      ],
    };
  };
  Page.view = Object.assign(show, { withoutMachine: true });
})();
