"use strict";
// Puts the plots of #slimfl-plots into their places.
for (const [id, plot] of Object.entries(JSON.parse(document.getElementById("slimfl-plots").textContent))) {
  slimflCharts.mount(document.getElementById(id), plot, id);
}
document.documentElement.dataset.drawn = "true";
