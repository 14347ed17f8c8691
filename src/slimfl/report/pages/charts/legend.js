// What a plot's colours and dashes mean.

function entries(plot) {
  if (plot.kind === "curves") return plot.series.map((s) => ({ name: s.name, colour: s.colour, dash: s.dash }));
  if (plot.kind === "heat") {
    const used = new Set(plot.cells.flatMap((line) => [...line]));
    return plot.words.map((name, i) => ({ name, colour: plot.colours[i], code: i })).filter((e) => used.has(e.code.toString(36)));
  }
  if (plot.legend) return plot.stacks.map((s) => ({ name: s.name, colour: s.colour }));
  return [];
}

// For the downloaded file, which has no page around it. Returns the height that it takes.
function drawLegend(plot, state, width, theme, into) {
  let x = 10, y = 18, drawn = 0;
  for (const entry of entries(plot).filter((e) => !state.hidden.has(e.name))) {
    const name = fitted(entry.name, width - 60), wide = 34 + textWidth(name) + 18;
    if (x > 10 && x + wide > width) { x = 10; y += 20; }
    const colour = entry.colour[theme.index];
    into.push(entry.dash === undefined
      ? svg("rect", { x, y: y - 10, width: 12, height: 12, fill: colour })
      : svg("line", { x1: x, x2: x + 26, y1: y - 4, y2: y - 4, stroke: colour, "stroke-width": 2.1, "stroke-dasharray": entry.dash }));
    into.push(svg("text", { x: x + (entry.dash === undefined ? 18 : 32), y }, name));
    x += wide; drawn++;
  }
  return drawn ? y + 8 : 0;
}

const DRAW = { curves: drawCurves, bars: drawBars, heat: drawHeat };
const AT = { curves: curvesAt, bars: barsAt, heat: heatAt };
