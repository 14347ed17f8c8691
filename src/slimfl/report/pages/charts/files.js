// A plot as a CSV or SVG file.

const LIGHT = { index: 0, ink: "#1d2329", soft: "#5b6670", grid: "#e4e7ea", card: "#ffffff" };

function svgFile(plot, state, label) {
  const width = 860, parts = [];
  const top = drawLegend(plot, state, width, LIGHT, parts);
  const { root } = DRAW[plot.kind](plot, state, width, LIGHT, top);
  root.prepend(svg("title", {}, label), svg("rect", { width: "100%", height: "100%", fill: LIGHT.card }), ...parts);
  return new XMLSerializer().serializeToString(root);
}

// Keeps a spreadsheet from reading text as a formula.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvRows(plot) {
  if (plot.kind === "curves") {
    const head = ["curve", ...plot.x.map((axis) => axis.label), plot.y.label, "lowest seed", "highest seed"];
    return [head, ...plot.series.flatMap((s) => s.y.map((value, i) => [
      s.name, ...s.x.map((k) => plot.xs[k][i]), value, (s.low ?? s.y)[i], (s.high ?? s.y)[i],
    ]))];
  }
  if (plot.kind === "bars") {
    const marks = plot.marks ? [plot.marks.name, "two standard errors"] : [];
    const named = plot.rows.some((r) => r.name);
    const head = [...(named ? ["method", "segment"] : [plot.y.label]), ...plot.stacks.map((s) => `${s.name}, ${plot.x[0].label}`), ...marks];
    return [head, ...plot.rows.map((r, i) => [
      ...(named ? [r.name, r.label] : [Number(r.label)]), ...plot.stacks.map((s) => s.values[i]),
      ...(plot.marks ? [plot.marks.values[i], plot.marks.errors[i]] : []),
    ])];
  }
  return [["round", "device", "arrived"], ...plot.rounds.flatMap((round, j) =>
    plot.devices.map((device, i) => [round, device, plot.words[parseInt(plot.cells[i][j], 36)]]))];
}

const csvFile = (plot) => `${csvRows(plot).map((line) => line.map(csvCell).join(",")).join("\r\n")}\r\n`;

function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
