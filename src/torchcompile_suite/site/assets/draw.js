// Pictures. Lines over time are drawn by uPlot, which is loaded when the first of them is drawn.
// Points with intervals and stacked bars are SVG, so that each mark is a link of its own.
//
// Colours are those of the style sheet. Series differ in shape or dash, too, for readers who do not
// see the colours.
"use strict";

const Draw = (() => {
  const { make } = Page;
  const SVG = "http://www.w3.org/2000/svg";
  const SHAPES = ["circle", "square", "triangle", "diamond", "cross"];
  const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3]];
  // Around 0, for a size of 1.
  const POLYGONS = {
    triangle: "0,-1.2 1.1,0.9 -1.1,0.9",
    diamond: "0,-1.3 1.3,0 0,1.3 -1.3,0",
    down: "0,1.2 1.1,-0.9 -1.1,-0.9",
    cross:
      "-1.2,-0.4 -0.4,-0.4 -0.4,-1.2 0.4,-1.2 0.4,-0.4 1.2,-0.4 1.2,0.4 0.4,0.4 0.4,1.2 -0.4,1.2 -0.4,0.4 -1.2,0.4",
  };
  const WIDEST = 960;
  // Drawn again when the size or the colours change.
  const pictures = new Set();

  function svg(tag, attributes, ...children) {
    return Page.fill(document.createElementNS(SVG, tag), attributes, children);
  }

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // A picture with its caption. `draw(width)` returns an element, or a promise of one. Without
  // anything to draw there is no `draw`, and no picture.
  function figure(caption, draw) {
    if (!draw) return null;
    const place = make("div", {
      class: "drawing",
      role: "group",
      "aria-label": caption,
      tabindex: "0",
    });
    const made = make("figure", {}, place, make("figcaption", {}, caption));
    const picture = {
      place,
      width: 0,
      drawn: false,
      async draw(force = false) {
        const width = Math.min(place.clientWidth, WIDEST);
        if (!width || (!force && width === picture.width)) return;
        picture.width = width;
        const drawn = await draw(width);
        stop(place);
        place.replaceChildren(drawn);
        picture.drawn = true;
        made.dataset.drawn = "true";
      },
    };
    prune();
    pictures.add(picture);
    new ResizeObserver(() => picture.draw()).observe(place);
    return made;
  }

  // uPlot listens to the window until it is told to stop.
  const stop = (place) => place.querySelectorAll(".plot").forEach((one) => one.chart.destroy());

  function prune() {
    for (const picture of pictures) {
      if (picture.drawn && !picture.place.isConnected) {
        stop(picture.place);
        pictures.delete(picture);
      }
    }
  }

  function again() {
    prune();
    for (const picture of pictures) picture.draw(true);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  // Paper is white: uPlot's colours are those of the time of drawing.
  const printing = (on) => () => {
    document.documentElement.classList.toggle("paper", on);
    again();
  };
  window.addEventListener("beforeprint", printing(true));
  window.addEventListener("afterprint", printing(false));

  function shape(kind, x, y, size, more) {
    if (kind === "circle") return svg("circle", { cx: x, cy: y, r: size, ...more });
    if (kind === "square") {
      return svg("rect", { x: x - size, y: y - size, width: 2 * size, height: 2 * size, ...more });
    }
    return svg("polygon", {
      points: POLYGONS[kind],
      transform: `translate(${x} ${y}) scale(${size})`,
      ...more,
    });
  }

  // A picture below the names of its series with their marks.
  function legend(series, mark, picture) {
    const names = make(
      "ul",
      { class: "legend" },
      ...series.map((name, place) => {
        const sample = svg("svg", { width: 26, height: 14, "aria-hidden": "true" }, mark(place));
        return make("li", {}, sample, name);
      }),
    );
    return make("div", {}, names, picture);
  }

  // Round numbers between two on a log scale of ratios, 1 first; their labels do not meet.
  function ticks(low, high, x) {
    const all = [
      1, 2, 0.5, 5, 0.2, 10, 0.1, 0.8, 1.5, 0.7, 3, 0.9, 1.2, 0.6, 0.3, 4, 0.4, 1.1, 7, 1.3, 0.95,
      1.05, 20, 50, 0.05, 0.02, 100, 0.01, 1000,
    ];
    const found = [];
    for (const tick of all) {
      const inside = tick >= low && tick <= high;
      if (inside && found.every((one) => Math.abs(x(one) - x(tick)) > 36)) found.push(tick);
    }
    return found;
  }

  const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

  const line = (x1, x2, y1, y2, style) => svg("line", { x1, x2, y1, y2, class: style });

  const written = (text, x, y, style, anchor) =>
    svg("text", { x, y, class: style, "text-anchor": anchor }, text);

  // The name of a line: before it, or above it where the picture is narrow.
  const named = (text, narrow, left, y, most) =>
    narrow
      ? written(clip(text, most), left, y, "label")
      : written(clip(text, most), left - 8, y, "label", "end");

  const empty = (width, height) =>
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "picture" });

  // A picture with nothing but its scale. Ticks: {at, text, style}; `at` is where on the picture.
  function frame({ width, height, left, right, top, bottom }, ticks, title, titleAbove = 6) {
    const root = empty(width, height);
    const foot = height - bottom;
    for (const { at, text, style } of ticks) {
      root.append(
        line(at, at, top, foot, style ?? "grid"),
        written(text, at, foot + 14, "tick", "middle"),
      );
    }
    const middle = left + (width - left - right) / 2;
    root.append(written(title, middle, height - titleAbove, "title", "middle"));
    return root;
  }

  // The keyboard skips the links of a picture: the table below has the same links.
  const linked = ({ href, words }, ...parts) =>
    svg("a", { href, tabindex: "-1", "aria-label": words }, svg("title", {}, words), ...parts);

  // Ratios with their intervals around 1, a line for each label. Marks: {label, series, value, low,
  // high, href, words}. The place in `all` decides the colour and shape of a series, also on a picture
  // that does not have all of them.
  function ratios(marks, all, title) {
    if (!marks.length) return null;
    const series = all.filter((one) => marks.some((mark) => mark.series === one));
    const style = (name) => all.indexOf(name) % SHAPES.length;
    return (width) => {
      const labels = [...new Set(marks.map((mark) => mark.label))];
      const narrow = width < 520;
      // A label with one mark has it in the middle, whatever its series.
      const slots = marks.length > labels.length ? series.length : 1;
      const step = Math.max(20, 9 * slots + 6);
      // A phone has room for half of the first tick's number.
      const left = narrow
        ? 14
        : Math.min(width * 0.4, 12 + 7 * Math.max(...labels.map((one) => one.length)));
      const [right, top, bottom] = [16, 6, 40];
      const row = narrow ? step + 16 : step;
      const height = top + row * labels.length + bottom;
      const bounds = marks.flatMap((mark) => [
        mark.value,
        mark.low ?? mark.value,
        mark.high ?? mark.value,
      ]);
      const low = Math.min(0.95, ...bounds.filter((value) => value > 0));
      const high = Math.max(1.05, ...bounds);
      const span = Math.log(high / low);
      const inner = width - left - right;
      const x = (value) => left + (Math.log(Math.max(value, low) / low) / span) * inner;
      const scale = ticks(low, high, x).map((tick) => ({
        at: x(tick),
        text: String(tick),
        style: tick === 1 ? "one" : "grid",
      }));
      const size = { width, height, left, right, top, bottom };
      const root = frame(size, scale, narrow ? clip(title, 44) : title);
      const offset = new Map(labels.map((label, place) => [label, top + place * row]));
      for (const label of labels) {
        const y = offset.get(label) + (narrow ? 14 : row / 2 + 4);
        const most = narrow ? inner / 7 : (left - 8) / 6.8;
        root.append(named(label, narrow, left, y, Math.floor(most)));
      }
      for (const mark of marks) {
        const place = style(mark.series);
        const part = step / (slots + 1);
        const slot = slots > 1 ? series.indexOf(mark.series) : 0;
        const y = offset.get(mark.label) + (narrow ? 16 : 0) + part * (slot + 1);
        const parts = [];
        if (mark.low !== null && mark.low !== undefined) {
          parts.push(line(x(mark.low), x(mark.high), y, y, `s${place} stroke`));
        }
        parts.push(
          shape(SHAPES[place], x(mark.value), y, 4.5, { class: `s${place} fill` }),
          svg("circle", { cx: x(mark.value), cy: y, r: 9, class: "target" }),
        );
        root.append(linked(mark, ...parts));
      }
      const mark = (place) =>
        shape(SHAPES[style(series[place])], 13, 7, 5, { class: `s${style(series[place])} fill` });
      return legend(series, mark, root);
    };
  }

  // Stacked bars, a line for each label. Bars: {label, parts: [numbers], href, words}.
  function stacks(bars, series, title) {
    if (!bars.length || !series.length) return null;
    return (width) => {
      const narrow = width < 520;
      const left = narrow
        ? 8
        : Math.min(300, 12 + 7 * Math.max(...bars.map((bar) => bar.label.length)));
      const [right, top, bottom] = [16, 6, 40];
      const row = narrow ? 34 : 20;
      const height = top + row * bars.length + bottom;
      const sums = bars.map((bar) => bar.parts.reduce((sum, part) => sum + part, 0));
      const high = Math.max(...sums, 0.001);
      const inner = width - left - right;
      const x = (value) => left + (value / high) * inner;
      const unit = 10 ** Math.floor(Math.log10(high));
      const every =
        [1, 2, 5, 10].map((factor) => (factor * unit) / 5).find((one) => high / one <= 8) ?? unit;
      const scale = [];
      for (let tick = 0; tick <= high; tick += every) {
        scale.push({ at: x(tick), text: Page.Words.general(tick) });
      }
      const root = frame({ width, height, left, right, top, bottom }, scale, title);
      bars.forEach((bar, place) => {
        const y = top + place * row + (narrow ? 16 : 0);
        const most = narrow ? Math.floor(inner / 7) : 42;
        root.append(named(bar.label, narrow, left, narrow ? y - 4 : y + 13, most));
        const link = linked(bar);
        let from = 0;
        bar.parts.forEach((part, of) => {
          if (part > 0) {
            link.append(
              svg("rect", {
                x: x(from),
                y: y + 2,
                width: Math.max(0.5, x(from + part) - x(from)),
                height: 14,
                class: `s${of} fill part`,
              }),
            );
          }
          from += part;
        });
        root.append(link);
      });
      const mark = (place) =>
        svg("rect", { x: 4, y: 1, width: 18, height: 12, class: `s${place} fill` });
      return legend(series, mark, root);
    };
  }

  // One dot for each launch, a line for each group. Groups: {label, values: [{value, words, faint}]}.
  // Each group has a scale of its own: the median is in the middle.
  function dots(groups, title) {
    return (width) => {
      const narrow = width < 520;
      const left = narrow ? 8 : 130;
      const [right, row, top, bottom] = [16, narrow ? 52 : 38, 6, 36];
      const height = top + row * groups.length + bottom;
      const inner = width - left - right;
      // Of two values in the middle their geometric mean, because the scale is logarithmic.
      const middle = (values) => {
        const sorted = [...values].sort((a, b) => a - b);
        const half = (values.length - 1) / 2;
        return Math.sqrt(sorted[Math.floor(half)] * sorted[Math.ceil(half)]);
      };
      const away = groups.flatMap((group) => {
        const centre = middle(group.values.map((one) => one.value));
        return group.values.map((one) => Math.abs(Math.log(one.value / centre)));
      });
      const reach = Math.max(0.02, ...away) * 1.05;
      const x = (log) => left + ((log + reach) / (2 * reach)) * inner;
      const size =
        [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2].find(
          (one) => reach / Math.log1p(one) <= 4,
        ) ?? 5;
      const scale = [];
      for (let times = -4; times <= 4; times += 1) {
        const log = Math.sign(times) * Math.log1p(size * Math.abs(times));
        if (Math.abs(log) > reach) continue;
        // As far to the left as "+25%" is to the right is 1/1.25: "\u221220%".
        const percent = Math.abs(Math.expm1(log)) * 100;
        const sign = times > 0 ? "+" : times < 0 ? "\u2212" : "";
        scale.push({
          at: x(log),
          text: `${sign}${Page.Words.general(Number(percent.toPrecision(2)))}%`,
          style: times ? "grid" : "one",
        });
      }
      const words = narrow ? clip(title, 44) : title;
      const root = frame({ width, height, left, right, top, bottom }, scale, words, 4);
      groups.forEach((group, place) => {
        const y = top + row * place + (narrow ? 34 : row / 2);
        const centre = middle(group.values.map((one) => one.value));
        root.append(named(group.label, narrow, left, narrow ? y - 20 : y + 4, Infinity));
        for (const one of group.values) {
          root.append(
            shape(SHAPES[place % 5], x(Math.log(one.value / centre)), y, 5, {
              class: `s${place} ${one.faint ? "hollow" : "fill"}`,
            }),
          );
          root.lastChild.append(svg("title", {}, one.words));
        }
      });
      return root;
    };
  }

  // Exact counts over points of the axis, a line for each label. Lines: {label, values: [{value, kind,
  // words} or null]}; each has a scale of its own, because counts of models differ by thousands.
  // `kinds`: kind -> its name in the legend. A count that did not change has no number. Where not all
  // points have room, the newest are drawn.
  function counts(every, all, kinds) {
    const MARKS = {
      same: ["circle", "s4 fill"],
      fewer: ["down", "s2 fill"],
      more: ["triangle", "s1 fill"],
      gap: ["cross", "hollow"],
      new: ["diamond", "s0 fill"],
      gone: ["diamond", "s0 hollow"],
    };
    const [row, top] = [44, 28];
    const longest = (texts) => Math.max(0, ...texts.map((text) => text.length));
    const numbers = every.flatMap((line) =>
      line.values.map((one) => Page.Words.count(one?.value ?? null)),
    );
    const column = 7 * Math.max(6, longest(numbers) + 1);
    return (width) => {
      const names = longest(every.map((line) => line.label));
      const left = width < 520 ? 8 : Math.min(300, 24 + 7 * names);
      const above = width < 520 ? 22 : 0;
      const inner = width - left - column;
      const room = Math.max(1, Math.floor(inner / column) + 1);
      const labels = all.slice(-room);
      const lines = every.map((line) => ({ ...line, values: line.values.slice(-room) }));
      const height = top + (row + above) * lines.length;
      const x = (place) => left + column / 2 + (inner * place) / Math.max(1, labels.length - 1);
      const root = empty(width, height);
      labels.forEach((label, place) => {
        root.append(
          line(x(place), x(place), top, height, "grid"),
          written(label, x(place), 16, "tick", "middle"),
        );
      });
      lines.forEach(({ label, values: points }, number) => {
        const foot = top + (row + above) * (number + 1) - 8;
        const known = points.filter((one) => one && one.value !== null);
        const values = known.map((one) => one.value);
        const [low, high] = [Math.min(...values), Math.max(...values)];
        // A line that never changes lies in the middle.
        const y = (value) => foot - (high > low ? ((value - low) / (high - low)) * 16 : 8);
        root.append(named(label, above, left, above ? foot - row + 2 : foot - 4, above ? 44 : 42));
        const path = points
          .map((one, place) => (one && one.value !== null ? `${x(place)},${y(one.value)}` : null))
          .filter(Boolean);
        root.append(svg("polyline", { points: path.join(" "), class: "s4 stroke trace" }));
        let first = true;
        points.forEach((one, place) => {
          if (!one) return;
          const [kind, style] = MARKS[one.kind];
          const at = one.value === null ? foot - 8 : y(one.value);
          const mark = shape(kind, x(place), at, 4.5, { class: style });
          mark.append(svg("title", {}, one.words));
          root.append(mark);
          if (one.value !== null && (first || one.kind !== "same")) {
            root.append(written(Page.Words.count(one.value), x(place), at - 8, "count", "middle"));
            first = false;
          }
        });
      });
      const marks = Object.keys(kinds).map((name) => MARKS[name]);
      const mark = (place) => shape(marks[place][0], 13, 7, 5, { class: marks[place][1] });
      const drawn = legend(Object.values(kinds), mark, root);
      if (labels.length < all.length) {
        drawn.prepend(make("p", {}, `From ${labels[0]} on; the table has the others.`));
      }
      return drawn;
    };
  }

  async function plot(options, data, caption) {
    Data.style("vendor/uPlot.min.css");
    await Data.script("vendor/uPlot.iife.min.js");
    const place = make("div", { class: "plot", role: "img", "aria-label": caption });
    place.chart = new uPlot(options, data, place);
    return place;
  }

  const axis = (more) => ({
    stroke: colour("ink"),
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { stroke: colour("grid"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    ...more,
  });

  // The marks above a plot, those of one point above each other. The keyboard skips them, as the links
  // of other pictures.
  function marked(chart, marks) {
    return [...new Set(marks.map(({ place }) => place))].map((place) => {
      const links = marks
        .filter((mark) => mark.place === place)
        .map(({ text, href, words }) =>
          make("a", { href, title: words, "aria-label": words, tabindex: "-1" }, text),
        );
      const at = make("span", {}, ...links);
      at.style.left = `${chart.bbox.left / devicePixelRatio + chart.valToPos(place, "x")}px`;
      return at;
    });
  }

  // A line through a point of a plot.
  function upright(chart, place) {
    const { ctx, bbox } = chart;
    const x = Math.round(chart.valToPos(place, "x", true));
    ctx.save();
    ctx.strokeStyle = colour("quiet");
    ctx.setLineDash([4, 4]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  // Lines over points of the axis in equal steps, with bands for the intervals. Series: {name, values,
  // low, high}; a point without a value is a gap. `open(place)` is called for a click on a point.
  // Marks: {place, text, href, words}, links above the picture, with a line through their point.
  function lines(labels, series, unit, caption, open, marks = []) {
    if (labels.length < 2 || !series.length) return null;
    return async (width) => {
      const strip = make("div", { class: "marks" });
      const data = [labels.map((_, place) => place)];
      const shown = [{ label: Page.noun, value: (_, place) => labels[place] ?? "" }];
      const bands = [];
      series.forEach((one, place) => {
        const stroke = colour(`series-${place + 1}`);
        const at = data.length;
        data.push(one.values, one.high, one.low);
        shown.push(
          {
            label: one.name,
            stroke,
            width: 2,
            dash: DASHES[place % 5],
            points: { show: true, size: 7, fill: place ? colour("paper") : stroke },
            value: (_, value) => Page.Words.general(value),
          },
          { stroke: "transparent", points: { show: false } },
          { stroke: "transparent", points: { show: false } },
        );
        bands.push({ series: [at + 1, at + 2], fill: `${stroke}33` });
      });
      const height = Math.max(200, Math.min(280, width * 0.45));
      const longest = Math.max(...labels.map((label) => label.length));
      const every = Math.max(1, Math.ceil((labels.length * 26) / Math.max(1, width - 70)));
      const options = {
        width,
        height,
        scales: { x: { time: false, range: () => [-0.4, labels.length - 0.6] } },
        // A line is known by its dashes, too.
        legend: {
          markers: { dash: (chart, at) => (chart.series[at].dash?.length ? "dashed" : "solid") },
        },
        cursor: { points: { size: 10 }, drag: { x: false, y: false } },
        axes: [
          axis({
            splits: () => labels.map((_, place) => place).filter((place) => place % every === 0),
            values: (_, places) => places.map((place) => labels[place] ?? ""),
            rotate: 45,
            size: 16 + Math.min(70, longest * 6),
            incrs: [1],
            space: 1,
          }),
          axis({
            label: unit,
            labelSize: 22,
            size: 56,
            values: (_, values) => values.map((value) => Page.Words.general(value)),
          }),
        ],
        series: shown,
        bands,
        hooks: {
          // The bounds have no line in the legend: the table below has them.
          ready: [
            (chart) => {
              const columns = marked(chart, marks);
              strip.replaceChildren(...columns);
              // As high as the highest column: what is above its edge could not be scrolled to.
              strip.style.height = `${1.7 * Math.max(0, ...columns.map((one) => one.children.length))}rem`;
              chart.root.querySelectorAll(".u-series").forEach((line, place) => {
                if (place && (place - 1) % 3) line.hidden = true;
              });
              chart.over.classList.add("opens");
              chart.over.addEventListener("click", () => {
                if (chart.cursor.idx !== null && chart.cursor.idx !== undefined)
                  open(chart.cursor.idx);
              });
            },
          ],
          drawClear: [(chart) => marks.forEach(({ place }) => upright(chart, place))],
        },
      };
      return make("div", {}, strip, await plot(options, data, caption));
    };
  }

  // Curves over a log scale of calls. Series: {name, values}. What is beyond the range is not drawn.
  function curves(calls, series, title, unit, caption, range) {
    return (width) => {
      const options = {
        width,
        height: Math.max(220, Math.min(300, width * 0.45)),
        scales: { x: { time: false, distr: 3 }, y: { distr: 3, range: () => range } },
        cursor: { drag: { x: false, y: false } },
        padding: [8, 40, 0, 0],
        axes: [
          axis({
            label: title,
            labelSize: 20,
            values: (_, values) =>
              values.map((value) => (value === null ? "" : Page.Words.count(value))),
          }),
          axis({
            label: unit,
            labelSize: 22,
            size: 60,
            values: (_, values) =>
              values.map((value) => (value === null ? "" : Page.Words.general(value))),
          }),
        ],
        series: [
          { label: title, value: (_, value) => Page.Words.count(value) },
          ...series.map((one, place) => ({
            label: one.name,
            stroke: colour(`series-${place + 1}`),
            width: 2,
            dash: DASHES[place % 5],
            points: { show: false },
            value: (_, value) => Page.Words.general(value),
          })),
        ],
      };
      return plot(options, [calls, ...series.map((one) => one.values)], caption);
    };
  }

  return { figure, ratios, stacks, dots, counts, lines, curves };
})();
