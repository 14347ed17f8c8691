// Draws the plots described in #slimfl-plots, in the colours of the reader's screen.
"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("slimfl-plots").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Text colours depend on the screen, so Python writes INK for them.
  const inked = (value, ink) =>
    JSON.parse(JSON.stringify(value).replaceAll('"INK"', JSON.stringify(ink)));

  const axis = (given, ink, grid) => ({
    gridcolor: grid, zerolinecolor: grid, linecolor: grid, tickcolor: grid, dividercolor: grid,
    ...given,
  });

  const spell = (trace, words) =>
    trace.type === "heatmap" ? { ...trace, text: trace.z.map((row) => row.map((c) => words[c])) } : trace;

  function draw(id, plot) {
    const ink = colour("--ink"), grid = colour("--grid"), card = colour("--card");
    const layout = {
      ...plot.layout,
      height: plot.height,
      margin: { l: 56, r: 12, t: 34, b: 44 }, // the top holds the tool bar
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink },
      hoverlabel: { bgcolor: card, bordercolor: grid, font: { color: ink }, namelength: -1 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: ink },
      bargap: 0.3,
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", traceorder: "normal" },
      xaxis: axis(plot.layout.xaxis, ink, grid),
      yaxis: axis(plot.layout.yaxis, ink, grid),
    };
    const data = inked(plot.data, ink).map((trace) => spell(trace, plot.words));
    // Named one by one: the default bar has a button that uploads the chart.
    const buttons = [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]];
    const config = { responsive: true, displaylogo: false, modeBarButtons: buttons };
    return Plotly.react(id, data, layout, config);
  }

  const drawAll = () =>
    Promise.all(Object.entries(plots).map(([id, plot]) => draw(id, plot)));

  drawAll().then(() => { document.documentElement.dataset.drawn = "true"; });
  dark.addEventListener("change", drawAll);
})();
