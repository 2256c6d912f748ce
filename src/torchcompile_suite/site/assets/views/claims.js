// What documents claim about torch.compile, and what the results say about it.
"use strict";

(() => {
  const { section, table, marked, downloads } = Page;

  Page.view = async (context) => {
    const { machine, at } = context;
    const judged = await context.document(`claims/${at}`);
    const rows = Data.rows(judged);
    return {
      title: `Are the claims true here? ${context.title(at)}`,
      answer: judged.sentence,
      content: [
        "A verdict follows from a fixed rule for the claim, and from recorded results only. The documents are not published here; each is described above its claims.",
        ...Data.rows(judged.documents).map((document, place) =>
          section(
            `document-${place}`,
            document.subject,
            `${document.kind}. File name: ${document.id}.`,
            `Hardware: ${document.hardware}.`,
            `Setting: ${document.setting}`,
            table(
              `The claims of ${document.id}.`,
              [
                { title: "the document says", value: (row) => ({ text: row.says, why: row.id }) },
                {
                  title: "our results",
                  value: (row) => ({
                    ...marked(row.verdict, row.verdict, "gap"),
                    why: row.reason,
                  }),
                },
              ],
              rows.filter((row) => row.document === document.id),
            ),
          ),
        ),
        downloads(`claims ${machine.name} ${at}`, rows),
      ],
    };
  };
})();
