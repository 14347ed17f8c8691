// The frame of a plot and its axes.

function page(plot, width, height, theme) {
  const root = svg("svg", {
    xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT, "font-size": SIZE, fill: theme.ink,
  });
  return root;
}

function xAxis(root, area, range, axis, theme, grid) {
  const { values, step } = ticks(range[0], range[1], Math.max(2, Math.floor(area.width / 55)), axis.whole);
  const at = (value) => area.left + ((value - range[0]) / (range[1] - range[0] || 1)) * area.width;
  for (const value of values) {
    const x = at(value);
    root.append(svg("line", {
      x1: x, x2: x, y1: grid ? area.top : area.bottom, y2: area.bottom + 5, stroke: theme.grid,
    }));
    root.append(svg("text", { x, y: area.bottom + 18, "text-anchor": "middle" }, tickText(value, step)));
  }
  root.append(svg("line", { x1: area.left, x2: area.right, y1: area.bottom, y2: area.bottom, stroke: theme.soft }));
  root.append(svg("text", {
    x: (area.left + area.right) / 2, y: area.bottom + 38, "text-anchor": "middle", fill: theme.soft,
  }, axis.label));
  return at;
}

function yLabel(root, area, label, theme) {
  if (!label) return;
  const y = (area.top + area.bottom) / 2;
  root.append(svg("text", {
    x: 12, y, transform: `rotate(-90 12 ${y})`, "text-anchor": "middle", fill: theme.soft,
  }, label));
}

function area(left, top, width, bottom) {
  const right = width - 14;
  return { left, top, right, bottom, width: right - left, height: bottom - top };
}
