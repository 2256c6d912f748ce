// What people ask, answered by the results of a machine and point: all questions, or one of them.
"use strict";

(() => {
  const { section, table, sheet, downloads, link, choice, make } = Page;

  Page.view = async (context) => {
    const { at, chosen } = context;
    const found = await context.document(`answers/${at}`);
    const asked = found.questions.find((one) => one.name === chosen.ask);
    chosen.ask = asked?.name;
    const whose = found.machine
      ? make("p", {}, `The answers are those of ${found.machine}, which has most of the cells.`)
      : null;
    const measured = found.questions.filter((one) => one.rows.length).length;
    const sentence =
      asked?.sentence ??
      `Of ${found.questions.length} questions that need times, ${measured} have cells here.`;
    const options = found.questions.map(({ name, title }) => [name, title]);
    return {
      title: `${asked ? asked.title : "What people ask:"} ${context.title(at)}`,
      choices: [
        Page.choosePoint(context),
        choice("ask", "Question", [["", "all questions"], ...options], asked?.name ?? ""),
      ],
      answer: sentence,
      content: [
        whose,
        asked?.rows.length ? cells(context, asked) : null,
        questions(context, found.questions),
      ],
    };
  };

  function cells({ machine, at }, asked) {
    return section(
      "cells",
      "The cells",
      sheet("Every cell of the question: its figures, or why it has none.", asked),
      downloads(`${asked.name} ${machine.name} ${at}`, Data.rows(asked)),
    );
  }

  function questions({ manifest, chosen }, answered) {
    const sentences = new Map(answered.map((one) => [one.name, one.sentence]));
    return section(
      "questions",
      "All questions",
      table(
        "What people ask, and what these results answer.",
        [
          {
            title: "question",
            value: ([name, title, page]) => link(title, page, { ...chosen, ask: name }),
          },
          {
            title: "answer",
            value: ([name]) => sentences.get(name) ?? "The same on all machines: see its page.",
          },
        ],
        manifest.questions,
      ),
    );
  }
})();
