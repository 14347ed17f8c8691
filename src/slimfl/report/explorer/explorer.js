// The page: reads the controls, describes the link, and draws it.

const form = document.getElementById("controls");
const byId = (id) => document.getElementById(id);
const NUMBERS = ["noise_dbm", "power_dbm", "distance_m", "path_loss_exponent", "rician_k_db", "nakagami_m", "segments", "rate", "share", "devices"];
const PAPER = { noise_dbm: -40, power_dbm: 23, distance_m: 100, path_loss_exponent: 2.5, fading: "rayleigh", segments: 2, rate: 1.5, split: "share", share: 0.8, devices: 10 };
const PRESETS = {
  good: { ...PAPER, noise_dbm: -51 },
  poor: PAPER,
  sight: { ...PAPER, fading: "rician", rician_k_db: 6, split: "optimal" },
  far: { ...PAPER, distance_m: 250, split: "optimal" },
  five: { ...PAPER, segments: 5, rate: 0.6, split: "optimal" },
};
const SLIM = "var(--slimfl)";
const segmentColour = (i, segments) => (segments === 1 ? SLIM : `color-mix(in srgb, var(--first) ${Math.round((100 * (segments - 1 - i)) / (segments - 1))}%, ${SLIM})`);
const vanillaColour = (i) => `var(--vanilla-${i})`;
const paler = (colour) => `color-mix(in srgb, ${colour} 78%, var(--lighter))`; // below dark letters
const heading = (method) => (method === "tie" ? "Either: a tie" : `Send ${title(method)}`);
const title = (method) => (method === "slimfl" ? "SlimFL" : method?.replace("vanilla-", "Vanilla FL-") ?? "nothing");
let settings, found, map;

function read() {
  const values = { fading: form.fading.value, split: form.split.value };
  for (const name of NUMBERS) values[name] = Number(form[name].value);
  return values;
}

function write(values) {
  for (const [name, value] of Object.entries(values)) {
    const control = form[name];
    if (control.type === "range") { // a value of the command line may be beyond the slider's usual ends
      control.min = Math.min(control.min, value);
      control.max = Math.max(control.max, value);
      const places = (value - control.min) / control.step;
      if (Math.abs(places - Math.round(places)) > 1e-9) control.step = "any";
    }
    control.value = value;
  }
}

// A number on the page: all of its digits for a program, some for a person.
function put(element, value, text) {
  element.dataset.value = value;
  element.textContent = text;
}

const infinite = (value) => (value < 1e15 ? digits(value, 4) : "∞");

function showControls() {
  for (const name of NUMBERS) {
    const label = form[name].closest("label"), unit = form[name].dataset.unit;
    label.querySelector("output").textContent = `${digits(settings[name], 4).replace("-", "−")}${unit ? ` ${unit}` : ""}`;
  }
  const visible = {
    rician: settings.fading === "rician", nakagami: settings.fading === "nakagami",
    share: settings.split === "share" && settings.segments > 1, several: settings.segments > 1, two: settings.segments === 2,
  };
  for (const element of document.querySelectorAll("[data-for]")) element.hidden = !visible[element.dataset.for];
  form.split.closest("label").hidden = settings.segments === 1;
}

function showAdvice() {
  const { advice, slimfl, vanilla } = found, whole = vanilla[vanilla.length - 1];
  byId("advice").className = advice.kind;
  byId("method").textContent = heading(advice.method);
  byId("method").dataset.value = advice.method ?? "none";
  byId("reason").textContent = `${advice.reason[0].toUpperCase()}${advice.reason.slice(1)}.`;
  put(byId("ratio"), found.ratio, digits(found.ratio, 4));
  put(byId("slimfl-D"), slimfl.D, infinite(slimfl.D));
  put(byId("whole-D"), whole.D, infinite(whole.D));
  put(byId("perfect-D"), settings.segments, String(settings.segments));
}

function showArrivals() {
  const { slimfl, vanilla } = found, segments = settings.segments;
  const rows = [["SlimFL", slimfl.probabilities.map((p, i) => ({
    share: p - (slimfl.probabilities[i + 1] ?? 0), colour: paler(segmentColour(i, segments)),
    word: i === 0 ? "segment 1" : `segments 1–${i + 1}`,
  })).reverse()]];
  vanilla.forEach((one, i) => rows.push([`Vanilla FL-${one.width}`, [{ share: one.p, colour: paler(vanillaColour(i)), word: i === segments - 1 ? "everything" : `width ${one.width}` }]]));
  byId("arrivals").replaceChildren(...rows.map(([name, parts]) => {
    const row = html("div", "row"), bar = html("div", "bar"), lost = 1 - total(parts.map((part) => part.share));
    for (const part of [...parts, { share: lost, colour: "var(--lost)", word: "nothing" }]) {
      const piece = html("span", part.word === "nothing" ? "lost" : "", part.share >= 0.045 ? String(Math.round(100 * part.share)) : "");
      piece.style.cssText = `flex-grow:${Math.max(0, part.share)};background:${part.colour}`;
      piece.title = `${part.word}: ${(100 * part.share).toFixed(1)} of 100`;
      bar.append(piece);
    }
    row.append(html("span", "name", name), bar);
    return row;
  }));
}

function showNumbers() {
  const { slimfl, vanilla } = found, rows = [];
  const add = (key, name, segment, power, threshold, p, D) => {
    const row = html("tr");
    row.dataset.key = key;
    row.append(html("th", "", name), html("td", "", segment), html("td"), html("td"), html("td"), html("td"));
    put(row.children[2], p, p.toFixed(4));
    put(row.children[3], threshold, infinite(threshold));
    put(row.children[4], power, power.toFixed(3));
    if (D !== null) put(row.children[5], D, infinite(D));
    rows.push(row);
  };
  slimfl.split.forEach((share, i) => add(`slimfl-${i + 1}`, i ? "" : "SlimFL", String(i + 1), share, slimfl.thresholds[i], slimfl.probabilities[i], i ? null : slimfl.D));
  vanilla.forEach((one, i) => add(`vanilla-${i + 1}`, `Vanilla FL-${one.width}`, i ? `1–${i + 1}` : "1", 1, one.threshold, one.p, one.D));
  byId("numbers").tBodies[0].replaceChildren(...rows);
  const drowned = slimfl.thresholds.indexOf(Infinity), problem = byId("problem");
  problem.hidden = drowned < 0;
  if (drowned >= 0) problem.textContent = `Segment ${drowned + 1} drowns in the segments after it, however good the channel is: give segment 1 more than ${edge(settings.rate).toFixed(3)} of the power, or choose the optimal split.`;
}

function drawLuck() {
  const { slimfl, vanilla } = found, reaches = survival(settings);
  const plot = frame(byId("luck"), axis("gain of the channel, mean 1", 0.01, 10, { log: true, values: [0.01, 0.1, 1, 10] }), axis("chance", 0, 1));
  const gains = steps(Math.log(0.01), Math.log(10), 241).map(Math.exp);
  curve(plot, gains, gains.map(reaches), "var(--ink)");
  const mark = (t, p, colour, hollow) => {
    const place = Math.min(10, Math.max(0.01, t));
    plot.layer.append(svg("line", { class: "drop", x1: plot.x(place), x2: plot.x(place), y1: plot.y(p), y2: plot.bottom, style: `stroke:${colour}`, "stroke-dasharray": hollow ? "5 4" : "" }));
    dot(plot, place, p, colour);
  };
  vanilla.forEach((one, i) => mark(one.threshold, one.p, vanillaColour(i), true));
  slimfl.thresholds.forEach((t, i) => t < Infinity && mark(t, slimfl.probabilities[i], segmentColour(i, settings.segments)));
}

function drawNoise() {
  const { segments, rate } = settings, reaches = survival(settings);
  const [low, high] = noiseRange(settings, rate), noises = steps(low, high, 161);
  const plot = frame(byId("noise"), axis("noise power, dBm", low, high), axis("decoding probability", 0, 1));
  const ratios = noises.map((noise_dbm) => noiseToPower({ ...settings, noise_dbm }));
  for (let i = 0; i < segments; i++) curve(plot, noises, ratios.map((ratio) => reaches(ratio * target(rate * (i + 1)))), vanillaColour(i), "6 4");
  const needed = thresholds(found.slimfl.split, rate, 1);
  needed.forEach((t, i) => curve(plot, noises, ratios.map((ratio) => reaches(ratio * t)), segmentColour(i, segments)));
  upright(plot, settings.noise_dbm, "now");
  found.slimfl.probabilities.forEach((p, i) => dot(plot, settings.noise_dbm, p, segmentColour(i, segments)));
  return plot;
}

function drawSplit() {
  const { rate, segments } = settings, reaches = survival(settings), low = edge(rate);
  const shares = steps(low, 1, 203).slice(1, -1);
  const terms = shares.map((share) => superposed(splitAlong(share, rate, segments), rate, found.ratio, reaches).D);
  const whole = found.vanilla[segments - 1].D, best = superposed(optimalSplit(rate, segments), rate, found.ratio, reaches).D;
  const least = Math.min(...terms, best);
  const reasonable = least < 1e6 ? least : segments;
  const top = Math.max(reasonable + 1.5 * (reasonable - segments), 1.15 * reasonable, whole < 3 * reasonable ? 1.06 * whole : 0);
  const plot = frame(byId("split"), axis("λ, segment 1's share of the power", 0, 1), axis("D", segments, top));
  plot.layer.append(svg("rect", { class: "never", x: plot.left, y: plot.top, width: plot.x(low) - plot.left, height: plot.bottom - plot.top }));
  if (low > 0.22) plot.root.append(svg("text", { class: "word", x: (plot.left + plot.x(low)) / 2, y: (plot.top + plot.bottom) / 2, "text-anchor": "middle" }, "segment 1 drowns"));
  curve(plot, [0, 1], [whole, whole], vanillaColour(segments - 1), "6 4");
  curve(plot, shares, terms, SLIM);
  upright(plot, found.slimfl.split[0], "now");
  dot(plot, found.slimfl.split[0], found.slimfl.D, SLIM);
  return plot;
}

function drawMap() {
  map = preferenceMap(settings);
  const { noises, rates, preferred, tie } = map;
  const plot = frame(byId("map"), axis("noise power, dBm", noises[0], noises[noises.length - 1]), axis("rate of one segment, bit/s/Hz", 0.25, 4, { log: true, values: [0.25, 0.5, 1, 2, 4] }));
  cells(plot, noises, rates, preferred, [SLIM, ...found.vanilla.map((_, i) => vanillaColour(i))], tie);
  if (settings.rate >= 0.25 && settings.rate <= 4) plot.root.append(svg("text", { class: "star", x: plot.x(settings.noise_dbm), y: plot.y(settings.rate) + 7, "text-anchor": "middle" }, "★"));
  return plot;
}

function showLegend() {
  const entry = (colour, word, dash) => {
    const item = html("li"), sample = svg("svg", { width: 30, height: 12, "aria-hidden": "true" });
    sample.append(svg("line", { x1: 0, x2: 30, y1: 6, y2: 6, style: `stroke:${colour}`, "stroke-width": 3, "stroke-dasharray": dash }));
    item.append(sample, word);
    return item;
  };
  byId("legend").replaceChildren(
    ...found.slimfl.split.map((_, i) => entry(segmentColour(i, settings.segments), `SlimFL, segment ${i + 1}`, "")),
    ...found.vanilla.map((one, i) => entry(vanillaColour(i), `Vanilla FL-${one.width}`, "6 4")),
  );
}

function showCommand() {
  const words = ["slimfl link", `--noise-dbm ${settings.noise_dbm}`, `--power-dbm ${settings.power_dbm}`, `--distance-m ${settings.distance_m}`,
    `--path-loss-exponent ${settings.path_loss_exponent}`, `--spectral-efficiency ${settings.rate}`, `--segments ${settings.segments}`, `--devices ${settings.devices}`];
  const split = settings.split === "optimal" ? "optimal" : found.slimfl.split.map((share) => Number(share.toFixed(9))).join(",");
  if (settings.segments > 1) words.push(`--split ${split}`);
  words.push(`--set radio.fading=${settings.fading}`);
  if (settings.fading === "rician") words.push(`--set radio.rician_k_db=${settings.rician_k_db}`);
  if (settings.fading === "nakagami") words.push(`--set radio.nakagami_m=${settings.nakagami_m}`);
  byId("command").textContent = words.join(" \\\n  ");
}

const plots = {};
function show() {
  settings = read();
  found = describe(settings);
  showControls();
  showAdvice();
  showArrivals();
  showNumbers();
  drawLuck();
  plots.noise = drawNoise();
  if (settings.segments > 1) plots.split = drawSplit();
  if (settings.segments === 2) plots.map = drawMap();
  showLegend();
  showCommand();
}

// Dragging in a plot sets what its axes stand for.
function dragged(id, event) {
  const plot = plots[id], box = byId(id).getBoundingClientRect();
  const clip = (value, input) => Math.min(input.max, Math.max(input.min, value));
  const x = plot.xAxis.value((event.clientX - box.left - plot.left) / (plot.right - plot.left));
  const y = plot.yAxis.value((plot.bottom - (event.clientY - box.top)) / (plot.bottom - plot.top));
  if (id === "split") { form.split.value = "share"; form.share.value = clip(x, form.share); }
  else form.noise_dbm.value = clip(x, form.noise_dbm);
  if (id === "map") form.rate.value = clip(y, form.rate);
  show();
}

for (const place of document.querySelectorAll(".drag")) {
  place.addEventListener("pointerdown", (event) => { place.setPointerCapture(event.pointerId); dragged(place.id, event); });
  place.addEventListener("pointermove", (event) => { if (event.buttons) dragged(place.id, event); });
}
for (const button of document.querySelectorAll("[data-preset]")) {
  button.addEventListener("click", () => { write(PRESETS[button.dataset.preset]); show(); });
}
let waiting = 0;
const soon = () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(show); };
form.addEventListener("input", soon);
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("resize", soon);
write(JSON.parse(byId("slimfl-link").textContent));
show();
document.documentElement.dataset.drawn = "true";
const preference = () => map;
