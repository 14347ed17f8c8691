// A heat map: one cell per device and round.

function drawHeat(plot, state, width, theme, top) {
  const height = plot.height + top;
  const root = page(plot, width, height, theme);
  const rows = plot.devices.length, columns = plot.rounds.length;
  const box = area(26 + Math.max(20, ...plot.devices.map((d) => textWidth(String(d)))) + 8, top + 6, width, height - 46);
  const each = box.height / rows, wide = box.width / columns;
  yLabel(root, box, plot.y.label, theme);
  const skip = Math.ceil(15 / each);
  plot.devices.forEach((device, i) => {
    if (i % skip === 0) root.append(svg("text", { x: box.left - 7, y: box.top + (i + 0.5) * each + 4, "text-anchor": "end" }, String(device)));
  });
  const colours = plot.colours.map((pair) => pair[theme.index]);
  if (rows * columns <= RECTANGLES) {
    const gapX = wide > 6 ? 1 : 0, gapY = each > 6 ? 1 : 0;
    const paths = colours.map(() => "");
    plot.cells.forEach((line, i) => [...line].forEach((digit, j) => {
      paths[parseInt(digit, 36)] += `M${(box.left + j * wide).toFixed(2)} ${(box.top + i * each).toFixed(2)}h${(wide - gapX).toFixed(2)}v${(each - gapY).toFixed(2)}h-${(wide - gapX).toFixed(2)}Z`;
    }));
    paths.forEach((d, code) => d && root.append(svg("path", { class: "cells", d, fill: colours[code] })));
  } else { // one pixel per cell, stretched
    const canvas = document.createElement("canvas");
    canvas.width = columns; canvas.height = rows;
    const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
    const rgb = colours.map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
    plot.cells.forEach((line, i) => {
      for (let j = 0; j < columns; j++) image.data.set([...rgb[parseInt(line[j], 36)], 255], 4 * (i * columns + j));
    });
    context.putImageData(image, 0, 0);
    root.append(svg("image", {
      class: "cells", href: canvas.toDataURL(), x: box.left, y: box.top, width: box.width, height: box.height,
      preserveAspectRatio: "none", style: "image-rendering:pixelated",
    }));
  }
  // a column is a round, and rounds may have been left out: ticks stand under columns
  const { values } = ticks(plot.rounds[0], plot.rounds[columns - 1], Math.max(2, Math.floor(box.width / 55)), true);
  const marked = columns === 1 ? [plot.rounds[0]] : values;
  for (const value of marked) {
    const column = nearest(plot.rounds, value), at = box.left + (column + 0.5) * wide;
    root.append(svg("line", { x1: at, x2: at, y1: box.bottom, y2: box.bottom + 5, stroke: theme.soft }));
    root.append(svg("text", { x: at, y: box.bottom + 18, "text-anchor": "middle" }, plot.rounds[column].toLocaleString("en-US")));
  }
  root.append(svg("text", { x: (box.left + box.right) / 2, y: box.bottom + 38, "text-anchor": "middle", fill: theme.soft }, plot.x[0].label));
  return { root, box, each, wide };
}

function nearest(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low > 0 && value - sorted[low - 1] <= sorted[low] - value ? low - 1 : low;
}

function heatAt(plot, state, drawn, px, py) {
  const i = Math.floor((py - drawn.box.top) / drawn.each), j = Math.floor((px - drawn.box.left) / drawn.wide);
  if (i < 0 || j < 0 || i >= plot.devices.length || j >= plot.rounds.length) return null;
  const code = parseInt(plot.cells[i][j], 36);
  return { x: null, title: `round ${plot.rounds[j].toLocaleString("en-US")}, device ${plot.devices[i]}`, rows: [{ name: plot.words[code], text: "", colour: plot.colours[code] }], points: [] };
}
