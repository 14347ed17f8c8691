// Horizontal bars, stacked, with marks for what was expected.

function drawBars(plot, state, width, theme, top) {
  const height = plot.height + top;
  const root = page(plot, width, height, theme);
  const named = plot.rows.some((r) => r.name);
  const left = (plot.y.label ? 26 : 4) + Math.max(20, ...plot.rows.map((r) => textWidth(r.label))) + 8;
  const box = area(left, top + 6, width, height - 46);
  const axis = plot.x[0];
  const x = xAxis(root, box, plot.range, axis, theme, true);
  yLabel(root, box, plot.y.label, theme);
  const names = named ? plot.rows.filter((r, i) => i === 0 || r.name !== plot.rows[i - 1].name).length : 0;
  const nameHeight = 24, each = (box.height - names * nameHeight) / Math.max(1, plot.rows.length);
  const thick = Math.max(1, each - (each > 6 ? Math.min(7, each * 0.25) : each > 3 ? 1 : 0));
  const skip = Math.ceil(15 / each); // labels must not overlap
  const stacks = plot.stacks.filter((stack) => !state.hidden.has(stack.name));
  const places = [];
  let y = box.top, hatch = 0;
  plot.rows.forEach((r, i) => {
    if (named && (i === 0 || r.name !== plot.rows[i - 1].name)) {
      root.append(svg("text", { x: 4, y: y + 16, "font-weight": 600 }, fitted(r.name, width - 12)));
      y += nameHeight;
    }
    const middle = y + each / 2;
    if (named || i % skip === 0) root.append(svg("text", { x: box.left - 7, y: middle + 4, "text-anchor": "end" }, r.label));
    let sum = 0;
    for (const stack of stacks) {
      const value = stack.values[i], colour = (stack.colours ? stack.colours[i] : stack.colour)[theme.index];
      const from = x(sum), to = x(sum + value);
      sum += value;
      if (!(to > from)) continue;
      const fill = stack.hatched ? hatched(root, `hatch-${Math.random().toString(36).slice(2)}-${hatch++}`, colour) : colour;
      root.append(svg("rect", {
        class: "bar", x: from.toFixed(2), y: (middle - thick / 2).toFixed(2), width: (to - from).toFixed(2), height: thick.toFixed(2),
        fill, stroke: stack.hatched ? colour : theme.card, "stroke-width": stack.hatched ? 1 : each > 6 ? 0.6 : 0,
      }));
    }
    const mark = plot.marks ? plot.marks.values[i] : null;
    if (mark !== null) drawMark(root, x, middle, mark, plot.marks.errors[i], theme);
    places.push({ top: y, bottom: y + each, middle, i });
    y += each;
  });
  return { root, box, places, x, stacks };
}

function hatched(root, id, colour) {
  const pattern = svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  pattern.append(svg("rect", { width: 6, height: 6, fill: colour, "fill-opacity": 0.12 }));
  pattern.append(svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, stroke: colour, "stroke-width": 3 }));
  root.append(pattern);
  return `url(#${id})`;
}

function drawMark(root, x, middle, value, error, theme) {
  // marks are shares in percent, which no error takes beyond 0 and 100
  const from = x(Math.max(0, value - error)), to = x(Math.min(100, value + error)), at = x(value);
  root.append(svg("path", {
    class: "mark", d: `M${from} ${middle}H${to}M${from} ${middle - 5}v10M${to} ${middle - 5}v10`, stroke: theme.ink, "stroke-width": 1.6, fill: "none",
  }));
  root.append(svg("path", { d: `M${at - 5} ${middle}l5 -5l5 5l-5 5Z`, fill: theme.ink, stroke: theme.card }));
}

function barsAt(plot, state, drawn, px, py) {
  const place = drawn.places.find((p) => py >= p.top && py < p.bottom);
  if (!place) return null;
  const r = plot.rows[place.i];
  const rows = drawn.stacks.map((stack) => ({
    name: stack.name, text: valueText(stack.values[place.i], plot.x[0]), colour: stack.colours ? stack.colours[place.i] : stack.colour,
  }));
  const mark = plot.marks ? plot.marks.values[place.i] : null;
  if (mark !== null) rows.push({ name: plot.marks.name, text: `${valueText(mark, plot.x[0])} ± ${valueText(plot.marks.errors[place.i], plot.x[0])}` });
  return { x: null, title: r.name ? `${r.name}, ${r.label}` : `${plot.y.label} ${r.label}`, rows, points: [] };
}

function fitted(text, width) {
  if (textWidth(text) * 1.08 <= width) return text;
  while (text.length > 1 && textWidth(`${text}…`) * 1.08 > width) text = text.slice(0, -1);
  return `${text}…`;
}
