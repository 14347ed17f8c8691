// A plot on the page: hover, legend, zoom, downloads.

function html(tag, kind, text = "") {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.textContent = text;
  return element;
}

function button(text, kind, act) {
  const made = html("button", kind, text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

// Puts a plot into an element and keeps it there: hover, legend, zoom, downloads.
// `theme()` returns the current colours of the screen.
function mount(element, plot, theme, name) {
  const state = { hidden: new Set(), choice: 0, zoom: null };
  const label = element.getAttribute("aria-label") ?? "";
  const bar = html("div", "chart-bar"), legend = html("div", "chart-legend"), tools = html("div", "chart-tools");
  const stage = html("div", "chart-stage"), tip = html("div", "chart-tip");
  tip.hidden = true;
  bar.append(legend, tools);
  element.before(bar);
  element.append(stage, tip);
  let drawn = null, cursor = null, dragged = null, width = 0;

  const unzoom = button("whole range", "chart-tool", () => { state.zoom = null; draw(); });
  if (plot.kind === "curves" && plot.x.length > 1) {
    const choices = html("span", "chart-choices");
    plot.x.forEach((axis, i) => choices.append(button(axis.label, "chart-choice", () => {
      state.choice = i; state.zoom = null; draw();
    })));
    legend.before(choices);
  }
  tools.append(
    unzoom,
    button("CSV", "chart-tool", () => download(`slimfl-${name}.csv`, "text/csv", csvFile(plot))),
    button("SVG", "chart-tool", () => download(`slimfl-${name}.svg`, "image/svg+xml", svgFile(plot, state, label))),
  );
  tools.lastChild.setAttribute("aria-label", `Download as SVG: ${label}`);
  tools.lastChild.previousSibling.setAttribute("aria-label", `Download as CSV: ${label}`);
  const toggles = plot.kind === "heat" ? [] : entries(plot).map((entry) => {
    const toggle = button("", "chart-entry", () => {
      if (!state.hidden.delete(entry.name)) state.hidden.add(entry.name);
      draw();
    });
    const sample = svg("svg", { width: entry.dash === undefined ? 14 : 30, height: 12, "aria-hidden": "true" });
    toggle.append(sample, html("span", "", entry.name));
    toggle.title = "hide or show";
    legend.append(toggle);
    return { entry, toggle, sample };
  });

  function draw() {
    const colours = theme();
    width = element.clientWidth;
    drawn = DRAW[plot.kind](plot, state, Math.max(220, width), colours, 0);
    cursor = svg("g", { "pointer-events": "none" });
    drawn.root.append(cursor);
    drawn.root.style.display = "block";
    stage.replaceChildren(drawn.root);
    leave();
    unzoom.hidden = state.zoom === null;
    bar.querySelectorAll(".chart-choice").forEach((b, i) => b.setAttribute("aria-pressed", i === state.choice));
    for (const { entry, toggle, sample } of toggles) {
      const on = !state.hidden.has(entry.name);
      toggle.setAttribute("aria-pressed", on);
      sample.replaceChildren(entry.dash === undefined
        ? svg("rect", { width: 12, height: 12, fill: entry.colour[colours.index] })
        : svg("line", { x1: 0, x2: 30, y1: 6, y2: 6, stroke: entry.colour[colours.index], "stroke-width": 2.4, "stroke-dasharray": entry.dash }));
    }
  }

  function leave() {
    tip.hidden = true;
    cursor.replaceChildren();
  }

  function show(px, py) {
    const found = AT[plot.kind](plot, state, drawn, px, py);
    cursor.replaceChildren();
    if (!found) { tip.hidden = true; return; }
    const colours = theme(), { box } = drawn;
    if (found.x !== null) cursor.append(svg("line", { x1: found.x, x2: found.x, y1: box.top, y2: box.bottom, stroke: colours.soft }));
    for (const [x, y, colour] of found.points) cursor.append(svg("circle", { cx: x, cy: y, r: 4.5, fill: colour[colours.index], stroke: colours.card }));
    const rows = found.rows.slice(0, 12).map((r) => {
      const line = html("div", "chart-row"), dot = html("i", "");
      if (r.colour) dot.style.background = r.colour[colours.index];
      line.append(dot, html("span", "", r.name), html("b", "", r.text));
      return line;
    });
    if (found.rows.length > 12) rows.push(html("div", "", `and ${found.rows.length - 12} more`));
    tip.replaceChildren(html("strong", "", found.title), ...rows);
    tip.hidden = false;
    const at = found.x ?? px, room = element.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(room, at + 14 + tip.offsetWidth > element.clientWidth ? at - tip.offsetWidth - 14 : at + 14))}px`;
    tip.style.top = `${Math.max(0, Math.min(py - 20, element.clientHeight - tip.offsetHeight))}px`;
  }

  const inside = (event) => {
    const frame = drawn.root.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  stage.addEventListener("pointermove", (event) => {
    const [px, py] = inside(event);
    if (dragged === null) { show(px, py); return; }
    const { box } = drawn, from = Math.min(px, dragged), to = Math.max(px, dragged);
    cursor.replaceChildren(svg("rect", { x: from, y: box.top, width: to - from, height: box.height, fill: theme().soft, "fill-opacity": 0.2 }));
  });
  stage.addEventListener("pointerleave", () => { if (dragged === null) leave(); });
  stage.addEventListener("pointerdown", (event) => {
    const [px, py] = inside(event);
    if (event.pointerType !== "mouse" || plot.kind !== "curves" || event.button !== 0) { show(px, py); return; }
    dragged = px;
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointerup", (event) => {
    if (dragged === null) return;
    const { box, range } = drawn, ends = [dragged, inside(event)[0]].sort((a, b) => a - b);
    dragged = null;
    if (ends[1] - ends[0] < 12) return;
    const value = (px) => range[0] + ((Math.max(box.left, Math.min(box.right, px)) - box.left) / box.width) * (range[1] - range[0]);
    state.zoom = ends.map(value);
    draw();
  });
  stage.addEventListener("dblclick", () => { state.zoom = null; draw(); });
  draw();
  // the window was resized, or a collapsed part opened
  new ResizeObserver(() => { if (element.clientWidth && element.clientWidth !== width) draw(); }).observe(element);
  return { draw, plot, state, svgFile: () => svgFile(plot, state, label), csvFile: () => csvFile(plot) };
}
