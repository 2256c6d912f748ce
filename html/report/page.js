// The frame of every page: what is chosen, tables, downloads. Text of results becomes text nodes
// only: it is never read as markup.
"use strict";

const Page = (() => {
  // Lines of a table that are shown at once: a browser needs long for thousands.
  const MOST_LINES = 200;
  const FEWEST_TO_FILTER = 20;
  let manifest = null;
  let view = null;
  let drawing = 0; // counts the views, so that a slow one does not replace a later one

  // An element. Texts of results may be attributes and children: neither is read as markup. But no
  // handler, and no address that `address` has not made, is ever taken from a result.
  function make(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  // What is chosen stands behind the # of the address: this works on a host and from the disk.
  const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

  // An address: a page in a state. Empty values are left out.
  function address(page, changes) {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(changes)) {
      if (value !== "" && value !== null && value !== undefined) parameters.set(name, value);
    }
    return String(parameters) ? `${page}#${parameters}` : page;
  }

  // Go on with some choices changed.
  function choose(changes) {
    location.hash = address("", { ...state(), ...changes }).slice(1);
  }

  // The numbers in words, as `report` writes them.
  const Words = {
    // As `formatted` of the package with ".3g": a power of ten is no number for a reader.
    general(value, digits = 3) {
      if (value === null || value === undefined) return "-";
      if (digits === 3 && Math.abs(value) >= 999.5) return Words.count(value);
      if (value === 0) return "0";
      const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
      const strip = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
      if (exponent < -4 || exponent >= digits) {
        const size = String(Math.abs(exponent)).padStart(2, "0");
        return `${strip(mantissa)}e${exponent < 0 ? "-" : "+"}${size}`;
      }
      return strip(value.toFixed(digits - 1 - exponent));
    },
    fixed: (value, digits) => (value === null || value === undefined ? "-" : value.toFixed(digits)),
    seconds: (value) => Words.fixed(value, 1),
    // The unit that suits a time, and how many of it are a second.
    unit: (seconds) => (seconds >= 0.9995 ? ["s", 1] : seconds >= 1e-4 ? ["ms", 1e3] : ["us", 1e6]),
    duration(seconds, digits = 3) {
      if (seconds === null) return "-";
      const [unit, scale] = Words.unit(seconds);
      return `${Words.general(seconds * scale, digits)} ${unit}`;
    },
    count: (value) =>
      value === null || value === undefined
        ? "-"
        : value.toLocaleString("en-US", { maximumFractionDigits: 0 }),
    percent: (value) => (value === null ? "cannot tell" : `${(value * 100).toFixed(0)}%`),
    megabytes: (value) => (value === null ? "-" : (value / 1e6).toFixed(2)),
    // A bound of a ratio, as `Interval` of the package writes it: 0.996 and not 1.00.
    bound(value) {
      const texts = [2, 3, 4].map((digits) => value.toFixed(digits));
      return texts.find((text) => Number(text) !== 1) ?? texts[0];
    },
    // An interval of a row: "0.73 [0.70, 0.76]".
    interval: (row, name) => Words.bounds([row[name], row[`${name}_low`], row[`${name}_high`]]),
    bounds([value, low, high]) {
      if (value === null || value === undefined) return "-";
      return low === null
        ? Words.fixed(value, 2)
        : `${Words.fixed(value, 2)} [${Words.bound(low)}, ${Words.bound(high)}]`;
    },
    // Numbers of calls are estimated: two digits, as `BreakEven` of the package writes them.
    paysAfter(row) {
      if (row.break_even_state !== "calls") return row.break_even_state;
      const [least, most] = [row.break_even_least, row.break_even_most].map((calls) =>
        Number(Math.round(Math.max(1, calls)).toPrecision(2)),
      );
      return least === most
        ? `about ${Words.plural(most, "call")}`
        : `${Words.count(least)} to ${Words.plural(most, "call")}`;
    },
    plural: (count, noun) => `${Words.count(count)} ${noun}${count === 1 ? "" : "s"}`,
  };

  // A field with a meaning that the style shows.
  const marked = (text, judged, otherwise = "") => ({
    text,
    kind: manifest.styles[judged] ?? otherwise,
  });

  // A ratio and whether it pays, or how the cell ended.
  function paying(row) {
    if (!row) return "";
    if (row.outcome !== "ok") return { text: row.outcome, kind: "gap", why: row.reason };
    const fastest = row.fastest ? ", fastest" : "";
    return {
      ...marked(`${Words.interval(row, "ratio")} ${row.verdict}${fastest}`, row.verdict),
      slowed: row.slowdown,
    };
  }

  // A column of numbers.
  const number = (title, value, sort) => ({ title, number: true, value, sort });

  // A column with a figure of each row, which it sorts by.
  const figure = (title, name, words) =>
    number(
      title,
      (row) => words(row[name]),
      (row) => row[name],
    );

  // A column with an interval of each row.
  const interval = (title, name) => ({
    ...figure(title, name),
    value: (row) => Words.interval(row, name),
  });

  // The phases of a compile, in the order of time.
  const PHASES = {
    dynamo: "Dynamo",
    aot_autograd: "AOTAutograd",
    inductor: "Inductor",
    kernel_build: "kernel build",
  };

  // The columns that tables of several pages have.
  const COLUMNS = {
    // Of the baselines of these rows.
    baseline: (rows) =>
      figure(
        `${[...new Set(rows.map((row) => row.baseline))].join(" or ")} time`,
        "eager_s",
        Words.duration,
      ),
    mode: figure("mode time", "mode_s", Words.duration),
    ratio: { title: "ratio", value: paying, sort: (row) => row.ratio },
    cold: figure("cold s", "cold_compile_s", Words.seconds),
    warm: figure("warm s", "warm_compile_s", Words.seconds),
    // A row without an outcome has been compiled: the first page lists only such cells.
    paysAfter: number(
      "pays after",
      (row) => ((row.outcome ?? "ok") === "ok" ? Words.paysAfter(row) : ""),
      (row) => (row.break_even_state === "calls" ? row.break_even_calls : null),
    ),
  };

  // The mark of a measurement that should be made again.
  const slowed = (factor) =>
    make(
      "abbr",
      {
        title: `The processors were ${Words.fixed(factor, 2)} times as slow as at their best during this measurement, mostly because of a neighbour: the times are too long; the ratio is of pairs in turns.`,
      },
      "slowed",
    );

  function field(content) {
    if (content instanceof Node) return [content];
    if (content === null || content === undefined) return [""];
    if (typeof content !== "object") return [String(content)];
    return [
      content.text,
      content.why ? make("small", {}, content.why) : null,
      ...(content.slowed ? [" ", slowed(content.slowed)] : []),
    ];
  }

  // A table. Columns: {title, value(row), number, sort(row)}. The first column names the line. A
  // heading sorts by its column, where there is something to sort. A long table can be filtered.
  function table(caption, columns, rows) {
    if (!rows.length) return null;
    const body = make("tbody");
    let lines = [...rows];
    let open = false;
    const more = make("button", { type: "button", class: "more" });
    const filter =
      rows.length < FEWEST_TO_FILTER
        ? null
        : make("input", {
            type: "search",
            class: "filter",
            placeholder: "Filter these lines",
            "aria-label": `Filter: ${caption}`,
            autocomplete: "off",
            spellcheck: "false",
          });
    const texts = new Map(); // row -> its text; made when it is first looked for
    const text = (row) => {
      if (!texts.has(row)) {
        const parts = columns.map(
          (column) => make("td", {}, ...field(column.value(row))).textContent,
        );
        texts.set(row, parts.join(" ").toLowerCase());
      }
      return texts.get(row);
    };

    function fill() {
      const wanted = filter?.value.trim().toLowerCase() ?? "";
      const kept = wanted ? lines.filter((row) => text(row).includes(wanted)) : lines;
      const all = open || kept.length <= MOST_LINES;
      const shown = all ? kept : kept.slice(0, MOST_LINES);
      body.replaceChildren(
        ...shown.map((row) =>
          make(
            "tr",
            {},
            ...columns.map((column, place) => {
              const content = column.value(row);
              const kind = [content?.kind, column.number && "number"].filter(Boolean).join(" ");
              const attributes = { class: kind || null, scope: place === 0 ? "row" : null };
              return make(place === 0 ? "th" : "td", attributes, ...field(content));
            }),
          ),
        ),
      );
      if (wanted && !kept.length) {
        body.append(
          make("tr", {}, make("td", { colspan: columns.length }, "No line has this text.")),
        );
      }
      more.hidden = all;
      more.textContent = `Show all ${kept.length} lines`;
    }

    const heads = columns.map((column) => {
      const head = make("th", { scope: "col", class: column.number ? "number" : null });
      if (!column.sort || rows.length < 3) {
        head.append(column.title);
        return head;
      }
      const button = make("button", { type: "button" }, column.title);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const unknown = (value) => value === null || value === undefined;
        lines = [...rows].sort((one, other) => {
          const [a, b] = [column.sort(one), column.sort(other)];
          if (unknown(a) || unknown(b)) return unknown(a) - unknown(b);
          const order = typeof a === "string" ? a.localeCompare(b) : a - b;
          return down ? -order : order;
        });
        fill();
      });
      head.append(button);
      return head;
    });
    more.addEventListener("click", () => {
      open = true;
      fill();
    });
    filter?.addEventListener("input", fill);
    fill();
    return make(
      "div",
      {},
      filter,
      make(
        "div",
        { class: "wide", role: "region", "aria-label": caption, tabindex: "0" },
        make(
          "table",
          {},
          make("caption", {}, make("span", {}, caption)),
          make("thead", {}, make("tr", {}, ...heads)),
          body,
        ),
      ),
      more,
    );
  }

  // A table of text (`packs.sheet`). A column of numbers sorts by the first number of a figure as it
  // is written: "1,234", "0.75 [0.70, 0.80]" or "about 3 calls".
  function sheet(caption, { columns, numbers, rows }) {
    const right = new Set(numbers);
    const number = (text) => {
      const value = Number.parseFloat(text.replace(/^about /, "").replaceAll(",", ""));
      return Number.isNaN(value) ? null : value;
    };
    return table(
      caption,
      columns.map((title, place) => ({
        title,
        number: right.has(title),
        value: (row) => row[place],
        sort: (row) => (right.has(title) ? number(row[place]) : row[place]),
      })),
      rows,
    );
  }

  // The data of a view, to download. Made in the browser from the rows that the view shows.
  function downloads(name, rows) {
    if (!rows.length) return null;
    const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const plain = (value) => {
      if (value === null || value === undefined) return "";
      if (typeof value !== "string") return String(value);
      // A spreadsheet would read such a text as a formula, and in some countries ";" ends a field.
      const safe = value.replace(/(^|[;\t\r\n])(?=[=+\-@\t\r])/g, "$1'");
      return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    const csv = () =>
      [columns, ...rows.map((row) => columns.map((column) => row[column]))]
        .map((line) => `${line.map(plain).join(",")}\n`)
        .join("");
    const json = () => `[\n${rows.map((row) => JSON.stringify(row)).join(",\n")}\n]\n`;
    const button = (ending, content, type) => {
      const made = make("button", { type: "button" }, ending.toUpperCase());
      made.setAttribute("aria-label", `Download ${name} as ${ending.toUpperCase()}`);
      made.addEventListener("click", () => {
        const link = make("a", { download: `${name.replace(/[^A-Za-z0-9._-]+/g, "-")}.${ending}` });
        link.href = URL.createObjectURL(new Blob([content()], { type }));
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      });
      return made;
    };
    return make(
      "p",
      { class: "downloads" },
      `The data (${name}): `,
      button("csv", csv, "text/csv"),
      button("json", json, "application/json"),
    );
  }

  // A sentence on a page; an element as it is.
  const paragraph = (child) => (typeof child === "string" ? make("p", {}, child) : child);

  // A part of a page.
  function section(id, heading, ...children) {
    const parts = children.flat().filter(Boolean);
    if (!parts.length) return null;
    return make(
      "section",
      { id, "aria-labelledby": `${id}-heading` },
      make("h2", { id: `${id}-heading` }, heading),
      ...parts.map(paragraph),
    );
  }

  const link = (text, page, changes) => make("a", { href: address(page, changes) }, text);

  // One choice: a label and a list. Options: [value, text], or a value that is its own text.
  function choice(name, title, options, current, others = {}) {
    const select = make(
      "select",
      { id: `choose-${name}` },
      ...options.map((one) => {
        const [value, text = value] = [one].flat();
        return make("option", { value, selected: value === current ? "" : null }, text);
      }),
    );
    select.addEventListener("change", () => choose({ ...others, [name]: select.value }));
    return make(
      "div",
      { class: "choice" },
      make("label", { for: `choose-${name}` }, title),
      select,
    );
  }

  function search(context) {
    const input = make("input", {
      type: "search",
      id: "search",
      list: "models",
      placeholder: "such as resnet18",
      autocomplete: "off",
      spellcheck: "false",
    });
    const models = Object.keys(context.index.buckets);
    const form = make(
      "form",
      { role: "search", class: "choice" },
      make("label", { for: "search" }, "Find a model"),
      input,
      make("datalist", { id: "models" }, ...models.map((name) => make("option", { value: name }))),
    );
    const go = () => {
      const { machine, at } = context.chosen;
      location.href = address("cell.html", { machine, at, model: input.value.trim() });
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      go();
    });
    input.addEventListener("change", () => {
      if (models.includes(input.value)) go();
    });
    return form;
  }

  // The point that a text names: itself, or the newest patch of a tag such as v2.9.
  function pointOf(points, text) {
    const name = text.replace(/^v/, "");
    return points.includes(name) ? name : points.findLast((point) => minor(point) === name);
  }

  // Everything that a view needs; the choices are completed with what there is.
  async function context() {
    const wanted = state();
    const machine =
      manifest.machines.find((one) => one.name === wanted.machine) ?? manifest.machines[0];
    const points = machine?.points ?? [];
    for (const name of ["at", "before", "after"]) {
      if (wanted[name]) wanted[name] = pointOf(points, wanted[name]) ?? wanted[name];
    }
    const at = points.includes(wanted.at) ? wanted.at : points.at(-1);
    const index = machine && (await Data.index(machine));
    return {
      manifest,
      machine,
      index,
      wanted,
      chosen: { ...wanted, machine: machine?.name, at },
      at,
      label: (point) => manifest.points[point]?.label ?? point,
      title: (point) => manifest.points[point]?.title ?? point,
      document: (key) => Data.of(machine, key),
      cell: (name, text, point = at) =>
        link(text ?? name, "cell.html", { machine: machine.name, at: point, cell: name }),
      // A mark of `Draw.ratios`, which leads to the row's cell: an interval of the row.
      mark: (row, name, label, series, subject = row.cell, point = at) => ({
        label,
        series,
        value: row[name],
        low: row[`${name}_low`],
        high: row[`${name}_high`],
        href: address("cell.html", { machine: machine.name, at: point, cell: row.cell }),
        words: `${subject}: ${Words.interval(row, name)} ${row.verdict}`,
      }),
    };
  }

  function chooseMachine(context) {
    // Machines of one class have one title.
    const { machines } = context.manifest;
    const alone = ({ title }) => machines.filter((one) => one.title === title).length === 1;
    const names = machines.map((one) => [
      one.name,
      alone(one) ? one.title : `${one.title} (${one.name})`,
    ]);
    return choice("machine", "Machine", names, context.machine.name);
  }

  function choosePoint(context, points = context.machine.points) {
    const { noun } = context.manifest;
    const options = points
      .map((point) => {
        const facts = context.manifest.points[point];
        return [point, [facts.label, facts.note].filter(Boolean).join(" ")];
      })
      .reverse();
    return choice("at", noun[0].toUpperCase() + noun.slice(1), options, context.at);
  }

  // What every view of a machine says of it: first a warning, and last its name in commands.
  function about(machine) {
    const names = make("code", {}, (machine.machines ?? [machine.name]).join(", "));
    return [
      machine.warning ? make("p", { class: "warning" }, machine.warning) : null,
      make("p", { class: "quiet" }, `${machine.title}, in files and commands: `, names),
    ];
  }

  // All modes, in the order that gives each its colour and shape.
  const modesOf = (rows) => [...new Set([...manifest.modes, ...rows.map((row) => row.mode)])];

  // What the address asks for and the view does not have; null if it has everything.
  // What an address may name. A page keeps the choices of other pages.
  const NAMES = new Set(
    "machine at model cell before after question batch ask target phase mode count".split(" "),
  );

  function unknown({ wanted, chosen, label }) {
    const missing = Object.entries(wanted).filter(
      ([name, value]) => value && !(NAMES.has(name) && Object.values(chosen).includes(value)),
    );
    return missing.length
      ? make(
          "p",
          { class: "warning", role: "note" },
          `Not found here: ${missing.map(([name, value]) => `${name} ${label(value)}`).join(", ")}. The choices above say what is shown instead.`,
        )
      : null;
  }

  const minor = (point) => point.split(".").slice(0, 2).join(".");
  const releasePage = (point) => `release-${minor(point)}.html`;

  // What a story may concern only -> the question that asks it.
  const ONLY = { training: "training", starts: "cold starts" };

  // The stories about one of some points, such as 2.9.1; or about one of some models, if they concern
  // this machine, and the question where one is asked. `number`: the mark of the story.
  function told({ manifest, machine }, { models = [], points = [], question = null }) {
    const releases = points.map(minor);
    const concerns = (only) =>
      only.every((kind) =>
        kind === "gpu" ? machine.device !== "cpu" : !question || ONLY[kind] === question,
      );
    return manifest.stories
      .filter(
        ([, , about, of, only]) =>
          (concerns(only) && of.some((model) => models.includes(model))) ||
          about.some((release) => releases.includes(release)),
      )
      .map(([title, file, about], place) => ({ number: String(place + 1), title, file, about }));
  }

  // What a page about no machine keeps of the choices.
  const kept = () => {
    const { machine, at } = state();
    return { machine, at };
  };

  // A table of such stories; null without any.
  const stories = (found) =>
    table(
      "Stories: what a release changed, and why. Marks above a history lead to them.",
      [
        { title: "mark", value: ({ number }) => number },
        { title: "story", value: ({ title, file }) => link(title, file, kept()) },
        { title: "releases", value: ({ about }) => about.join(", ") },
      ],
      found,
    );

  // Their marks on a history of these points, as `Draw.lines` takes them.
  const marks = (found, points) =>
    points.flatMap((point, place) =>
      found
        .filter(({ about }) => about.includes(minor(point)))
        .map(({ number, title, file }) => ({
          place,
          text: number,
          href: address(file, kept()),
          words: `Story ${number}: ${title}`,
        })),
    );

  // A line of `Draw.lines`: an interval of the row of each point, times a factor; else a gap.
  function line(name, rows, column, points, factor = 1) {
    const take = (part) =>
      points.map((point) => {
        const value = rows.find((row) => row.point === point)?.[`${column}${part}`] ?? null;
        return value === null ? null : value * factor;
      });
    return { name, values: take(""), low: take("_low"), high: take("_high") };
  }

  async function render() {
    const mine = ++drawing;
    const place = document.getElementById("view");
    place.setAttribute("aria-busy", "true");
    try {
      if (!manifest.machines.length && !view.withoutMachine) {
        place.replaceChildren(make("p", {}, "Nothing was measured yet. Start with: nox -s bench"));
        return;
      }
      const now = await context();
      const made = await view(now);
      if (mine !== drawing) return;
      // A page about no machine keeps the choice for the others.
      if (made.ofNoMachine)
        Object.assign(now.chosen, { machine: now.wanted.machine, at: now.wanted.at });
      const focused = document.activeElement?.id;
      const followed = mine > 1 && place.querySelector("a:focus") !== null;
      const { choices = made.ofNoMachine ? [] : [choosePoint(now)] } = made;
      const all = made.ofNoMachine ? choices : [chooseMachine(now), ...choices, search(now)];
      document.getElementById("choices").replaceChildren(...all);
      const [warning, names] = made.ofNoMachine ? [] : about(now.machine);
      const answers = [made.answer ?? []].flat().map((one) => make("p", { class: "answer" }, one));
      const content = [unknown(now), warning, ...answers, ...(made.content ?? []), names];
      place.replaceChildren(...content.filter(Boolean).map(paragraph));
      const head = document.querySelector("h1");
      const another = made.title && made.title !== head.textContent;
      if (another) {
        head.textContent = made.title;
        document.title = `${made.title} - torch.compile`;
      }
      // Another cell or pair, or a link in the middle of the page led here.
      if (followed) document.getElementById("main").focus({ preventScroll: true });
      if (mine > 1 && (another || followed)) window.scrollTo(0, 0);
      for (const one of document.querySelectorAll("main a[href$='.html']"))
        one.dataset.keeps = one.getAttribute("href");
      for (const one of document.querySelectorAll("a[data-keeps]"))
        one.href = address(one.dataset.keeps, kept());
      for (const one of document.querySelectorAll("a[data-page]")) {
        const { machine, at, batch, question, mode } = now.chosen;
        one.href = address(one.getAttribute("href").split("#")[0], {
          machine,
          at,
          batch,
          question,
          mode,
        });
      }
      if (focused) document.getElementById(focused)?.focus();
    } catch (error) {
      if (mine === drawing)
        place.replaceChildren(make("p", { role: "alert" }, String(error.message)));
      throw error;
    } finally {
      if (mine === drawing) {
        place.setAttribute("aria-busy", "false");
        document.documentElement.dataset.drawn = String(mine);
        const said = document.querySelectorAll("h1, #view .answer");
        document.getElementById("status").textContent = [...said]
          .slice(0, 2)
          .map((one) => one.textContent)
          .join(". ");
      }
    }
  }

  async function start() {
    manifest = await Data.read("manifest", "manifest");
    window.addEventListener("hashchange", render);
    // A fragment of its own would take the place of the choices.
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      document.getElementById("main").focus();
    });
    render();
  }

  return {
    start,
    make,
    fill,
    address,
    choose,
    choice,
    choosePoint,
    link,
    marked,
    paying,
    number,
    figure,
    interval,
    COLUMNS,
    PHASES,
    section,
    table,
    sheet,
    downloads,
    told,
    stories,
    marks,
    line,
    minor,
    releasePage,
    modesOf,
    Words,
    get noun() {
      return manifest.noun;
    },
    set view(made) {
      view = made;
    },
  };
})();
