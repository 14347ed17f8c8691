// Small plots in SVG: a frame with axes, curves, marks, cells. They are drawn anew at each change.

function svg(tag, attributes = {}, text = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
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

// Values for ticks in steps of 1, 2 or 5 times a power of ten.
function ticks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9));
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) values.push(Number((i * step).toPrecision(12)));
  return values;
}

// An axis: `at` places a value between 0 and 1.
function axis(label, low, high, { log = false, values = null } = {}) {
  const scale = log ? Math.log : (value) => value;
  const span = scale(high) - scale(low);
  return {
    label, low, high, values,
    at: (value) => (scale(value) - scale(low)) / span,
    value: (place) => (log ? Math.exp(scale(low) + place * span) : low + place * span),
  };
}

// A plot in `place`: returns where a value stands, and the layer to draw into.
function frame(place, x, y, height = 260) {
  const width = Math.max(260, place.clientWidth), left = 52, right = width - 12, top = 22, bottom = height - 44;
  const root = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": place.dataset.label });
  const xAt = (value) => left + x.at(value) * (right - left), yAt = (value) => bottom - y.at(value) * (bottom - top);
  for (const value of y.values ?? ticks(y.low, y.high, 5)) {
    root.append(svg("line", { class: "grid", x1: left, x2: right, y1: yAt(value), y2: yAt(value) }));
    root.append(svg("text", { class: "tick", x: left - 7, y: yAt(value) + 4, "text-anchor": "end" }, String(value).replace("-", "−")));
  }
  for (const value of x.values ?? ticks(x.low, x.high, Math.max(3, (right - left) / 70))) {
    root.append(svg("line", { class: "grid", x1: xAt(value), x2: xAt(value), y1: top, y2: bottom }));
    root.append(svg("text", { class: "tick", x: xAt(value), y: bottom + 17, "text-anchor": "middle" }, String(value).replace("-", "−")));
  }
  root.append(svg("text", { class: "axis", x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle" }, x.label));
  const middle = (top + bottom) / 2;
  root.append(svg("text", { class: "axis", x: 13, y: middle, transform: `rotate(-90 13 ${middle})`, "text-anchor": "middle" }, y.label));
  const clip = svg("clipPath", { id: `${place.id}-clip` });
  clip.append(svg("rect", { x: left, y: top, width: right - left, height: bottom - top }));
  const layer = svg("g", { "clip-path": `url(#${place.id}-clip)` });
  root.append(clip, layer);
  place.replaceChildren(root);
  return { root, layer, x: xAt, y: yAt, left, right, top, bottom, xAxis: x, yAxis: y };
}

function curve(plot, xs, ys, colour, dash = "") {
  let d = "", pen = false;
  xs.forEach((value, i) => {
    if (!Number.isFinite(ys[i])) { pen = false; return; }
    d += `${pen ? "L" : "M"}${plot.x(value).toFixed(1)} ${plot.y(Math.min(ys[i], 1e9)).toFixed(1)}`;
    pen = true;
  });
  plot.layer.append(svg("path", { class: "curve", d, style: `stroke:${colour}`, "stroke-dasharray": dash }));
}

// A vertical line with a word above it.
function upright(plot, value, word, kind = "now") {
  if (!(value >= plot.xAxis.low && value <= plot.xAxis.high)) return;
  const x = plot.x(value);
  plot.root.append(svg("line", { class: kind, x1: x, x2: x, y1: plot.top, y2: plot.bottom }));
  const anchor = x < plot.left + 30 ? "start" : x > plot.right - 30 ? "end" : "middle";
  plot.root.append(svg("text", { class: `${kind} word`, x, y: plot.top - 7, "text-anchor": anchor }, word));
}

function dot(plot, x, y, colour) {
  if (!(y <= plot.yAxis.high)) return;
  plot.root.append(svg("circle", { class: "dot", cx: plot.x(x), cy: plot.y(y), r: 5, style: `fill:${colour}` }));
}

// Cells of a map, one path per colour; dots where `marked`.
function cells(plot, columns, rows, codes, colours, marked) {
  const wide = (plot.right - plot.left) / columns.length, high = (plot.bottom - plot.top) / rows.length;
  const paths = colours.map(() => "");
  let dots = "";
  codes.forEach((row, i) => row.forEach((code, j) => {
    const x = plot.left + j * wide, y = plot.bottom - (i + 1) * high;
    if (code >= 0) paths[code] += `M${x.toFixed(1)} ${y.toFixed(1)}h${(wide + 0.5).toFixed(1)}v${(high + 0.5).toFixed(1)}h-${(wide + 0.5).toFixed(1)}Z`;
    if (marked[i][j] && (i + j) % 2 === 0) dots += `M${(x + wide / 2).toFixed(1)} ${(y + high / 2).toFixed(1)}h0`;
  }));
  paths.forEach((d, code) => d && plot.layer.append(svg("path", { class: "cells", d, style: `fill:${colours[code]}` })));
  plot.layer.append(svg("path", { class: "ties", d: dots }));
}
