// Lines with their bands.

function path(xs, ys, at, height) {
  let text = "", pen = false;
  for (let i = 0; i < xs.length; i++) {
    if (ys[i] === null) { pen = false; continue; }
    text += `${pen ? "L" : "M"}${at(xs[i]).toFixed(1)} ${height(ys[i]).toFixed(1)}`;
    pen = true;
  }
  return text;
}

function drawCurves(plot, state, width, theme, top) {
  const height = plot.height + top;
  const root = page(plot, width, height, theme);
  const shown = plot.series.filter((series) => !state.hidden.has(series.name));
  const axis = plot.x[state.choice];
  let range = state.zoom;
  if (!range) {
    range = extent(plot.series.flatMap((s) => extent(xValues(plot, s, state.choice))));
    if (!axis.whole) range = [Math.min(0, range[0]), range[1]];
    if (range[0] === range[1]) range = [range[0] - 1, range[1] + 1];
    else { const room = (range[1] - range[0]) * 0.015; range = [range[0] - (axis.whole ? room : 0), range[1] + room]; }
  }
  const [low, high] = plot.range;
  const rule = ticks(low, high, Math.max(3, Math.floor(plot.height / 60)), plot.y.whole);
  const labels = rule.values.map((value) => tickText(value, rule.step));
  const box = area(34 + Math.max(...labels.map(textWidth)), top + 10, width, height - 46);
  const y = (value) => box.bottom - ((value - low) / (high - low || 1)) * box.height;
  rule.values.forEach((value, i) => {
    root.append(svg("line", { x1: box.left, x2: box.right, y1: y(value), y2: y(value), stroke: theme.grid }));
    root.append(svg("text", { x: box.left - 7, y: y(value) + 4, "text-anchor": "end" }, labels[i]));
  });
  yLabel(root, box, plot.y.label, theme);
  const x = xAxis(root, box, range, axis, theme, true);

  const clip = `clip-${Math.random().toString(36).slice(2)}`; // unique among all drawings of a page
  const holder = svg("clipPath", { id: clip });
  holder.append(svg("rect", { x: box.left, y: box.top - 4, width: box.width, height: box.height + 8 }));
  root.append(holder);
  const layer = svg("g", { "clip-path": `url(#${clip})`, fill: "none" });
  for (const series of shown.filter((s) => s.low)) { // below all lines, so that no band covers one
    const xs = xValues(plot, series, state.choice);
    const back = path([...xs].reverse(), [...series.low].reverse(), x, y).replace("M", "L");
    layer.append(svg("path", {
      class: "band", d: `${path(xs, series.high, x, y)}${back}Z`, fill: series.colour[theme.index], "fill-opacity": 0.17,
    }));
  }
  for (const series of shown) {
    const xs = xValues(plot, series, state.choice), colour = series.colour[theme.index];
    layer.append(svg("path", {
      class: "curve", d: path(xs, series.y, x, y), stroke: colour, "stroke-dasharray": series.dash,
      "stroke-width": xs.length <= 200 ? 2.1 : 1.5, "stroke-linejoin": "round",
    }));
    if (xs.length <= MARKERS) {
      xs.forEach((value, i) => series.y[i] !== null && layer.append(
        svg("circle", { cx: x(value).toFixed(1), cy: y(series.y[i]).toFixed(1), r: 2.6, fill: colour })));
    }
  }
  root.append(layer);
  return { root, box, range, x, y, shown };
}

// The values under the pointer: all curves at one round, or the nearest point of one curve.
function curvesAt(plot, state, drawn, px, py) {
  const axis = plot.x[state.choice];
  if (axis.whole) {
    let best = null;
    for (const s of drawn.shown) for (const value of xValues(plot, s, state.choice)) {
      if (value < drawn.range[0] || value > drawn.range[1]) continue;
      if (best === null || Math.abs(drawn.x(value) - px) < Math.abs(drawn.x(best) - px)) best = value;
    }
    if (best === null) return null;
    const rows = drawn.shown.map((s) => {
      const i = xValues(plot, s, state.choice).indexOf(best);
      return i < 0 || s.y[i] === null ? null : row(plot, s, i);
    }).filter(Boolean).sort((a, b) => b.value - a.value);
    return { x: drawn.x(best), title: `${axis.label} ${valueText(best, axis)}`, rows, points: rows.map((r) => [drawn.x(best), drawn.y(r.value), r.colour]) };
  }
  let best = null;
  for (const s of drawn.shown) xValues(plot, s, state.choice).forEach((value, i) => {
    if (s.y[i] === null || value < drawn.range[0] || value > drawn.range[1]) return;
    const distance = Math.hypot(drawn.x(value) - px, drawn.y(s.y[i]) - py);
    if (!best || distance < best.distance) best = { distance, s, i, value };
  });
  if (!best) return null;
  const only = row(plot, best.s, best.i);
  return { x: drawn.x(best.value), title: valueText(best.value, axis), rows: [only], points: [[drawn.x(best.value), drawn.y(only.value), only.colour]] };
}

function row(plot, series, i) {
  const band = series.low ? ` (${valueText(series.low[i], { ...plot.y, unit: "" })} to ${valueText(series.high[i], { ...plot.y, unit: "" })})` : "";
  return { name: series.name, value: series.y[i], text: valueText(series.y[i], plot.y) + band, colour: series.colour };
}
