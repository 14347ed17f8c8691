"use strict";
// What the pages of slimfl share: charts on Observable Plot, their legend, pointer, zoom and files.
// A description of a plot comes from slimfl.report.pages.plots. Colours are [light, dark].
const slimflCharts = (() => {
const SVG = "http://www.w3.org/2000/svg";
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const MARKERS = 40; // lines with up to this many points get dots
const LIGHT = { index: 0, ink: "#1d2329", soft: "#5b6670", grid: "#e4e7ea", card: "#ffffff" };
const dark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  const style = getComputedStyle(document.documentElement);
  const colours = ["ink", "soft", "grid", "card"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]);
  return { index: dark.matches ? 1 : 0, ...Object.fromEntries(colours) };
}

function svg(tag, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

function html(tag, kind = "", text = "") {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.textContent = text;
  return element;
}

function button(text, kind, act) {
  const made = html("button", kind, text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

// Plot with the style of all our charts.
function draw(colours, { marks, ...options }) {
  const made = Plot.plot({
    marginLeft: 56, marginRight: 16, marginTop: 12, marginBottom: 44,
    style: { fontFamily: FONT, fontSize: "12.5px", color: colours.ink, background: "none", overflow: "visible" },
    ...options,
    x: { labelAnchor: "center", labelArrow: "none", labelOffset: 38, ...options.x },
    y: { labelAnchor: "center", labelArrow: "none", ...options.y },
    marks: marks.filter(Boolean),
  });
  made.querySelector("style")?.remove(); // a strict policy forbids it, and page.css says the same
  made.setAttribute("font-family", FONT);
  return made;
}

// Lines behind a plot; `y` and `x` are the ticks of the axes.
const grids = (colours, y, x) => [
  y !== undefined && Plot.gridY({ ticks: y, stroke: colours.grid, strokeOpacity: 1 }),
  x !== undefined && Plot.gridX({ ticks: x, stroke: colours.grid, strokeOpacity: 1 }),
];

// Fewer ticks than whole numbers, so that none stands between two of them.
const ticks = (range, width, whole) => {
  const span = range[1] - range[0], most = Math.max(2, Math.floor(width / 75));
  return !whole ? most : span < 1 ? [Math.round((range[0] + range[1]) / 2)] : Math.min(most, span);
};

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  return low < high ? [low, high] : low === high ? [low - 0.5, low + 0.5] : [0, 1];
}

const shown = (plot, state) => plot.series.filter((s) => !state.hidden.has(s.name));
const places = (plot, s, state) => plot.xs[s.x[state.choice]];

function curves(plot, state, colours, width) {
  const axis = plot.x[state.choice];
  const range = state.zoom ?? plot.domain ?? extent(plot.series.flatMap((s) => places(plot, s, state)));
  const each = (s, i, key) => (s[key] ?? s.y)[i];
  return draw(colours, {
    width, height: plot.height,
    x: { domain: range, label: axis.label, ticks: ticks(range, width, axis.whole) },
    y: { domain: plot.range, label: plot.y.label, ticks: plot.height / 80 },
    marks: [
      ...grids(colours, plot.height / 80),
      ...shown(plot, state).flatMap((s) => {
        const xs = places(plot, s, state), rows = Array.from(xs, (_, i) => i), colour = s.colour[colours.index];
        const x = (i) => xs[i], y = (i) => s.y[i];
        return [
          s.low && Plot.areaY(rows, { x, y1: (i) => each(s, i, "low"), y2: (i) => each(s, i, "high"), fill: colour, fillOpacity: 0.14, clip: true }),
          Plot.line(rows, { x, y, stroke: colour, strokeWidth: 2.1, strokeDasharray: s.dash, clip: true }),
          xs.length <= MARKERS && Plot.dot(rows, { x, y, fill: colour, r: 2.6, clip: state.zoom !== null }),
        ];
      }),
      Plot.ruleY([plot.range[0]], { stroke: colours.soft }),
    ],
  });
}

function bars(plot, state, colours, width) {
  const named = plot.rows.some((row) => row.name), x = plot.x[0], each = 24;
  const begins = plot.rows.map((row, i) => named && (i === 0 || row.name !== plot.rows[i - 1].name));
  const domain = plot.rows.flatMap((_, i) => (begins[i] ? [`name ${i}`, `${i}`] : [`${i}`]));
  const stacks = plot.stacks.filter((stack) => !state.hidden.has(stack.name));
  const skip = Math.ceil(15 * plot.rows.length / plot.height);
  const colour = (stack, i) => (stack.colours?.[i] ?? stack.colour)[colours.index];
  const pattern = (stack, i) => `hatch-${colour(stack, i).slice(1)}`;
  const data = stacks.flatMap((stack) => plot.rows.map((_, i) => ({ i, stack, value: stack.values[i] })));
  const marked = plot.marks ? plot.rows.map((_, i) => i).filter((i) => plot.marks.values[i] !== null) : [];
  // marks are shares in percent, which no error takes beyond 0 and 100
  const end = (sign) => (i) => Math.min(100, Math.max(0, plot.marks.values[i] + sign * plot.marks.errors[i]));
  const hatched = data.filter((bar) => bar.stack.hatched);
  const made = draw(colours, {
    width, height: plot.height, marginLeft: named ? 84 : 56, marginTop: 4,
    x: { domain: plot.range, label: x.label, ticks: ticks(plot.range, width, x.whole) },
    y: { type: "band", domain, padding: plot.height / domain.length > 6 ? 0.12 : 0, label: plot.y.label || null },
    marks: [
      ...grids(colours, undefined, ticks(plot.range, width, x.whole)),
      Plot.axisY({ tickSize: 0, label: plot.y.label || null, labelAnchor: "center", tickFormat: (key) => (key.startsWith("name") || (!named && key % skip) ? "" : plot.rows[key].label) }),
      named && Plot.text(domain.filter((key) => key.startsWith("name")), {
        y: (key) => key, frameAnchor: "left", dx: -80, text: (key) => fitted(plot.rows[key.slice(5)].name, width - 12), fontWeight: 600, fill: colours.ink, textAnchor: "start",
      }),
      Plot.barX(data, {
        x: "value", y: (bar) => `${bar.i}`, insetTop: 2, insetBottom: 2,
        fill: ({ stack, i }) => (stack.hatched ? `url(#${pattern(stack, i)})` : colour(stack, i)), stroke: ({ stack, i }) => (stack.hatched ? colour(stack, i) : "none"),
      }),
      Plot.link(marked, { x1: end(-1), x2: end(1), y1: (i) => `${i}`, y2: (i) => `${i}`, stroke: colours.ink, strokeWidth: 1.6, marker: "tick" }),
      Plot.dot(marked, { x: (i) => plot.marks.values[i], y: (i) => `${i}`, symbol: "diamond", r: 5, fill: colours.ink, stroke: colours.card }),
    ],
  });
  for (const bar of new Map(hatched.map((one) => [pattern(one.stack, one.i), one])).values()) {
    const fill = svg("pattern", { id: pattern(bar.stack, bar.i), width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    fill.append(svg("rect", { width: 6, height: 6, fill: colour(bar.stack, bar.i), "fill-opacity": 0.12 }), svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, stroke: colour(bar.stack, bar.i), "stroke-width": 3 }));
    made.prepend(fill);
  }
  return made;
}

const code = (plot, i, j) => parseInt(plot.cells[i][j], 36);

function heat(plot, state, colours, width) {
  const rows = plot.devices.length, columns = plot.rounds.length, skip = Math.ceil(15 * rows / plot.height);
  const many = ticks([0, columns], width, true), step = Math.ceil(columns / many) || 1;
  const marked = plot.rounds.map((_, j) => j).filter((j) => j % step === 0);
  return draw(colours, {
    width, height: plot.height,
    x: { domain: [0, columns], label: plot.x[0].label, ticks: marked.map((j) => j + 0.5), tickFormat: (v) => plot.rounds[v - 0.5].toLocaleString("en-US"), nice: false },
    y: { domain: [rows, 0], label: plot.y.label, ticks: plot.devices.map((_, i) => i + 0.5).filter((v) => (v - 0.5) % skip === 0), tickFormat: (v) => `${plot.devices[v - 0.5]}`, tickSize: 0 },
    marks: [() => cells(columns, rows, (i, j) => code(plot, i, j), plot.colours.map((pair) => pair[colours.index]), { x: 56, y: 12, width: width - 72, height: plot.height - 56 })],
  });
}

// Coloured cells, one path per colour; a run of equal cells is one piece once gaps would not be seen.
function cells(columns, rows, codeOf, colours, box) {
  const wide = box.width / columns, high = box.height / rows, group = svg("g", { class: "cells", role: "img", "aria-label": "cells" }), paths = {};
  const [gapX, gapY] = [wide > 6 ? 1 : 0, high > 6 ? 1 : 0];
  for (let i = 0; i < rows; i++) {
    for (let j = 0, next; j < columns; j = next) {
      const key = codeOf(i, j);
      for (next = j + 1; !gapX && next < columns && codeOf(i, next) === key;) next++;
      const right = ((next - j) * wide - gapX).toFixed(2);
      paths[key] = `${paths[key] ?? ""}M${(box.x + j * wide).toFixed(2)} ${(box.y + i * high).toFixed(2)}h${right}v${(high - gapY).toFixed(2)}h-${right}Z`;
    }
  }
  for (const [key, d] of Object.entries(paths)) if (colours[key]) group.append(svg("path", { d, fill: colours[key] }));
  return group;
}

function map(plot, state, colours, width) {
  const side = Math.min(width, plot.height), reach = 1.06 * Math.max(1, ...plot.points.map(([, x, y]) => Math.hypot(x, y)));
  const points = (full) => plot.points.map((point, i) => ({ point, i })).filter(({ point }) => point[4] === full);
  const at = (symbol) => ({ x: ({ point }) => point[1], y: ({ point }) => point[2], symbol, r: 4.5, fill: ({ i }) => plot.colours[i][colours.index], stroke: colours.soft });
  return draw(colours, {
    width: side, height: side, x: { domain: [-reach, reach], label: "m", ticks: 5 }, y: { domain: [-reach, reach], label: "m", ticks: 5 },
    marks: [...grids(colours, 5, 5), Plot.dot([0], { x: 0, y: 0, symbol: "plus", r: 7, stroke: colours.ink }), Plot.dot(points(true), at("circle")), Plot.dot(points(false), at("square"))],
  });
}

// --- what the pointer reads

const value = (number, axis) => {
  if (number === null || number === undefined) return "–";
  const text = axis.decimals === undefined ? Number(number.toPrecision(4)).toLocaleString("en-US", { maximumSignificantDigits: 4 }) : number.toFixed(axis.decimals);
  return axis.unit ? `${text} ${axis.unit}` : text;
};

function curvesAt(plot, state, made, px, py) {
  const axis = plot.x[state.choice], [x, y] = [made.scale("x"), made.scale("y")];
  const near = (s) => {
    const xs = places(plot, s, state);
    let best = -1, least = Infinity;
    xs.forEach((v, i) => {
      if (s.y[i] === null || v < x.domain[0] || v > x.domain[1]) return;
      const far = axis.whole ? Math.abs(x.apply(v) - px) : Math.hypot(x.apply(v) - px, y.apply(s.y[i]) - py);
      if (far < least) [best, least] = [i, far];
    });
    return { s, i: best, far: least, x: xs[best] };
  };
  const found = shown(plot, state).map(near).filter(({ i }) => i >= 0).sort((a, b) => a.far - b.far);
  if (!found.length) return null;
  const all = (axis.whole ? found.filter((one) => one.x === found[0].x) : found.slice(0, 1)).sort((a, b) => b.s.y[b.i] - a.s.y[a.i]);
  const plain = { ...plot.y, unit: "" };
  return {
    title: `${axis.whole ? `${axis.label} ` : ""}${value(found[0].x, axis)}`, x: x.apply(found[0].x),
    rows: all.map(({ s, i }) => ({
      name: s.name, colour: s.colour, at: y.apply(s.y[i]),
      text: value(s.y[i], plot.y) + (s.low ? ` (${value(s.low[i], plain)} to ${value(s.high[i], plain)})` : ""),
    })),
  };
}

function barsAt(plot, state, made, px, py) {
  const scale = made.scale("y");
  const i = plot.rows.findIndex((_, k) => Math.abs(scale.apply(`${k}`) + scale.bandwidth / 2 - py) <= scale.step / 2);
  if (i < 0) return null;
  const row = plot.rows[i], axis = plot.x[0];
  const rows = plot.stacks.filter((stack) => !state.hidden.has(stack.name)).map((stack) => ({ name: stack.name, colour: stack.colours?.[i] ?? stack.colour, text: value(stack.values[i], axis) }));
  const expected = plot.marks?.values[i] ?? null;
  if (expected !== null) rows.push({ name: plot.marks.name, text: `${value(expected, axis)} ± ${value(plot.marks.errors[i], axis)}` });
  return { title: row.name ? `${row.name}, ${row.label}` : `${plot.y.label} ${row.label}`, rows };
}

function heatAt(plot, state, made, px, py) {
  const [i, j] = [Math.floor(made.scale("y").invert(py)), Math.floor(made.scale("x").invert(px))];
  if (!plot.cells[i]?.[j]) return null;
  const found = code(plot, i, j);
  return { title: `round ${plot.rounds[j].toLocaleString("en-US")}, device ${plot.devices[i]}`, rows: [{ name: plot.words[found], text: plot.gains?.[j]?.[i] != null ? `gain ${plot.gains[j][i]}` : "", colour: plot.colours[found] }] };
}

const DRAW = { curves, bars, heat, map }, AT = { curves: curvesAt, bars: barsAt, heat: heatAt, map: () => null };

// --- files

function entries(plot) {
  if (plot.kind === "curves") return plot.series.map((s) => ({ name: s.name, colour: s.colour, dash: s.dash }));
  if (plot.kind === "bars" && plot.legend) return plot.stacks.map((s) => ({ name: s.name, colour: s.colour }));
  return plot.kind === "heat" ? plot.words.map((name, i) => ({ name, colour: plot.colours[i] })) : [];
}

function fitted(text, width) {
  const most = Math.max(8, Math.floor(width / 7.2));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

const sample = (colour, dash) => (dash === undefined
  ? svg("rect", { width: 12, height: 12, fill: colour })
  : svg("line", { x1: 0, x2: 30, y1: 6, y2: 6, stroke: colour, "stroke-width": 2.4, "stroke-dasharray": dash }));

function swatch(colour, dash) {
  const shape = svg("svg", { width: dash === undefined ? 14 : 30, height: 12, "aria-hidden": "true" });
  shape.append(sample(colour, dash));
  return shape;
}

// Fills a list with what colours and dashes mean, unless it says that already.
function legend(list, entries) {
  const text = JSON.stringify(entries);
  if (list.dataset.text === text) return;
  list.dataset.text = text;
  list.replaceChildren(...entries.map(({ name, colour = "currentColor", dash }) => {
    const item = html("li");
    item.append(swatch(colour, dash), name);
    return item;
  }));
}

function svgFile(plot, state, label) {
  const width = 860, inside = DRAW[plot.kind](plot, state, LIGHT, width), legend = [];
  let [x, y] = [10, 18];
  for (const entry of entries(plot).filter(({ name }) => !state.hidden.has(name))) {
    const name = fitted(entry.name, width - 60), wide = 52 + 7 * name.length;
    if (x > 10 && x + wide > width) [x, y] = [10, y + 20];
    const part = svg("g", { transform: `translate(${x} ${y - 10})` });
    part.append(sample(entry.colour[0], entry.dash), svg("text", { x: entry.dash === undefined ? 18 : 36, y: 10, fill: LIGHT.ink }, name));
    legend.push(part);
    x += wide;
  }
  const top = legend.length ? y + 8 : 0, height = Number(inside.getAttribute("height")) + top;
  const root = svg("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, "font-size": 12.5 });
  inside.setAttribute("y", top);
  root.append(svg("title", {}, label), svg("rect", { width, height, fill: LIGHT.card }), ...legend, inside);
  return new XMLSerializer().serializeToString(root);
}

// Keeps a spreadsheet from reading text as a formula.
function csvCell(cell) {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "number") return String(cell);
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const ROWS = {
  curves: (plot) => [
    ["curve", ...plot.x.map((axis) => axis.label), plot.y.label, "lowest seed", "highest seed"],
    ...plot.series.flatMap((s) => s.y.map((y, i) => [s.name, ...s.x.map((k) => plot.xs[k][i]), y, (s.low ?? s.y)[i], (s.high ?? s.y)[i]])),
  ],
  bars: (plot) => {
    const named = plot.rows.some((row) => row.name), marks = plot.marks ? [plot.marks.name, "two standard errors"] : [];
    return [
      [...(named ? ["method", "segment"] : [plot.y.label]), ...plot.stacks.map((s) => `${s.name}, ${plot.x[0].label}`), ...marks],
      ...plot.rows.map((row, i) => [...(named ? [row.name, row.label] : [Number(row.label)]), ...plot.stacks.map((s) => s.values[i]), ...(plot.marks ? [plot.marks.values[i], plot.marks.errors[i]] : [])]),
    ];
  },
  heat: (plot) => [["round", "device", "arrived"], ...plot.rounds.flatMap((round, j) => plot.devices.map((device, i) => [round, device, plot.words[code(plot, i, j)]]))],
  map: (plot) => [["device", "x, m", "y, m", "heard, % of the rounds that asked", "trains all widths"], ...plot.points.map((point) => [...point.slice(0, 4), point[4] ? "yes" : "no"])],
};

const csvFile = (plot) => `${ROWS[plot.kind](plot).map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// --- a plot on a page

function tipFor(stage) {
  const tip = stage.appendChild(html("div", "chart-tip"));
  tip.hidden = true;
  return {
    hide() { tip.hidden = true; },
    show(found, px, py, index) {
      const rows = found.rows.slice(0, 12).map((row) => {
        const line = html("div", "chart-row"), dot = html("i");
        if (row.colour) dot.style.background = row.colour[index];
        line.append(dot, html("span", "", row.name), html("b", "", row.text));
        return line;
      });
      if (found.rows.length > 12) rows.push(html("div", "", `and ${found.rows.length - 12} more`));
      tip.replaceChildren(html("strong", "", found.title), ...rows);
      tip.hidden = false;
      const at = found.x ?? px, wide = stage.clientWidth, left = at + 14 + tip.offsetWidth > wide ? at - tip.offsetWidth - 14 : at + 14;
      tip.style.left = `${Math.max(0, Math.min(wide - tip.offsetWidth, left))}px`;
      tip.style.top = `${Math.max(0, Math.min(py - 20, stage.clientHeight - tip.offsetHeight))}px`;
    },
  };
}

// Puts a plot into an element and keeps it there. `given` may replace it by another one later.
function mount(element, given, name, bare = false) {
  const state = { hidden: new Set(), choice: 0, zoom: null }, label = element.getAttribute("aria-label") ?? "";
  const stage = element.appendChild(html("div", "chart-stage")), tip = tipFor(element);
  let [plot, made, cursor, dragged, width, samples] = [given, null, null, null, 0, []];

  function redraw() {
    const colours = theme();
    width = element.clientWidth;
    made = DRAW[plot.kind](plot, state, colours, Math.max(220, width));
    cursor = made.appendChild(svg("g", { "pointer-events": "none" }));
    stage.replaceChildren(made);
    tip.hide();
    for (const update of samples) update(colours);
  }

  function leave() { tip.hide(); cursor.replaceChildren(); }

  function point(px, py) {
    const found = AT[plot.kind](plot, state, made, px, py), colours = theme();
    cursor.replaceChildren();
    if (!found) { tip.hide(); return; }
    if (found.x !== undefined) {
      const [top, bottom] = made.scale("y").range.toSorted((a, b) => a - b);
      cursor.append(svg("line", { x1: found.x, x2: found.x, y1: top, y2: bottom, stroke: colours.soft }));
      for (const { at, colour } of found.rows) cursor.append(svg("circle", { cx: found.x, cy: at, r: 4.5, fill: colour[colours.index], stroke: colours.card }));
    }
    tip.show(found, px, py, colours.index);
  }

  const inside = (event) => {
    const frame = made.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  stage.addEventListener("pointermove", (event) => {
    const [px, py] = inside(event);
    if (dragged === null) { point(px, py); return; }
    const [from, to] = [px, dragged].sort((a, b) => a - b);
    cursor.replaceChildren(svg("rect", { x: from, y: 12, width: to - from, height: plot.height - 56, fill: theme().soft, "fill-opacity": 0.2 }));
  });
  stage.addEventListener("pointerleave", () => { if (dragged === null) leave(); });
  stage.addEventListener("pointerdown", (event) => {
    const [px, py] = inside(event);
    if (bare || event.pointerType !== "mouse" || plot.kind !== "curves" || event.button !== 0) { point(px, py); return; }
    dragged = px;
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointerup", (event) => {
    if (dragged === null) return;
    const ends = [dragged, inside(event)[0]].sort((a, b) => a - b), x = made.scale("x");
    dragged = null;
    if (ends[1] - ends[0] < 12) return;
    state.zoom = ends.map((px) => Math.min(x.domain[1], Math.max(x.domain[0], x.invert(px))));
    redraw();
  });
  stage.addEventListener("dblclick", () => { state.zoom = null; redraw(); });
  if (!bare) samples = bar(element, plot, name, label, state, redraw);
  redraw();
  // the window was resized, or a collapsed part opened
  new ResizeObserver(() => { if (element.clientWidth && element.clientWidth !== width) redraw(); }).observe(element);
  dark.addEventListener("change", redraw);
  return { replace(other) { plot = other; redraw(); }, csvFile: () => csvFile(plot), redraw };
}

// The row above a plot: axes to choose from, a legend that hides and shows, files.
function bar(element, plot, name, label, state, redraw) {
  const row = html("div", "chart-bar"), legend = html("div", "chart-legend"), tools = html("div", "chart-tools"), updates = [];
  const unzoom = button("whole range", "chart-tool", () => { state.zoom = null; redraw(); });
  const file = (kind, type, text) => {
    const made = button(kind, "chart-tool", () => download(`slimfl-${name}.${kind.toLowerCase()}`, type, text()));
    made.setAttribute("aria-label", `Download as ${kind}: ${label}`);
    return made;
  };
  tools.append(unzoom, file("CSV", "text/csv", () => csvFile(plot)), file("SVG", "image/svg+xml", () => svgFile(plot, state, label)));
  updates.push(() => { unzoom.hidden = state.zoom === null; });
  if (plot.kind === "curves" && plot.x.length > 1) {
    const choices = html("span", "chart-choices");
    plot.x.forEach((axis, i) => {
      const choice = choices.appendChild(button(axis.label, "chart-choice", () => { state.choice = i; state.zoom = null; redraw(); }));
      updates.push(() => choice.setAttribute("aria-pressed", i === state.choice));
    });
    row.append(choices);
  }
  for (const entry of plot.kind === "heat" ? [] : entries(plot)) {
    const toggle = button("", "chart-entry", () => { if (!state.hidden.delete(entry.name)) state.hidden.add(entry.name); redraw(); });
    toggle.append(swatch(entry.colour[0], entry.dash), html("span", "", entry.name));
    toggle.title = "hide or show";
    legend.append(toggle);
    updates.push((colours) => {
      toggle.setAttribute("aria-pressed", !state.hidden.has(entry.name));
      toggle.firstChild.replaceWith(swatch(entry.colour[colours.index], entry.dash));
    });
  }
  row.append(legend, tools);
  element.before(row);
  return updates;
}

return { mount, draw, grids, cells, theme, svg, html, button, legend, csvFile };
})();
