// Puts the plots of #slimfl-plots into their places, in the colours of the reader's screen.
"use strict";
(() => {
  const plots = JSON.parse(document.getElementById("slimfl-plots").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    return {
      index: dark.matches ? 1 : 0,
      ink: colour("--ink"), soft: colour("--soft"), grid: colour("--grid"), card: colour("--card"),
    };
  };
  const charts = Object.entries(plots).map(([id, plot]) =>
    slimflCharts.mount(document.getElementById(id), plot, theme, id));
  dark.addEventListener("change", () => charts.forEach((chart) => chart.draw()));
  document.documentElement.dataset.drawn = "true";
})();
