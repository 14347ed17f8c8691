// The page: reads the controls, describes the link, and draws it.

const { draw: drawPlot, grids, cells, theme, legend } = slimflCharts;
const form = document.getElementById("controls");
const byId = (id) => document.getElementById(id);
const NUMBERS = ["noise_dbm", "power_dbm", "distance_m", "path_loss_exponent", "segments", "rate", "share", "devices"];
const PAPER = { noise_dbm: -40, power_dbm: 23, distance_m: 100, path_loss_exponent: 2.5, fading: "rayleigh", segments: 2, rate: 1.5, split: "share", share: 0.8, devices: 10 };
const PRESETS = {
  good: { ...PAPER, noise_dbm: -51 },
  poor: PAPER,
  sight: { ...PAPER, fading: "rician-6", split: "optimal" },
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
  const own = slimfl.probabilities.map((p, i) => [p - (slimfl.probabilities[i + 1] ?? 0), segmentColour(i, segments), i ? `segments 1–${i + 1}` : "segment 1"]);
  const others = vanilla.map((one, i) => [`Vanilla FL-${one.width}`, [[one.p, vanillaColour(i), i === segments - 1 ? "everything" : `width ${one.width}`]]]);
  const piece = ([share, colour, word], kind = "") => `<span class="${kind}" style="flex-grow:${Math.max(0, share)};background:${colour}"
    title="${word}: ${(100 * share).toFixed(1)} of 100">${share >= 0.045 ? Math.round(100 * share) : ""}</span>`;
  byId("arrivals").innerHTML = [["SlimFL", own.reverse()], ...others].map(([name, parts]) => {
    const lost = [1 - total(parts.map(([share]) => share)), "var(--lost)", "nothing"];
    const arrived = parts.map(([share, colour, word]) => piece([share, paler(colour), word])).join("");
    return `<div class="row"><span class="name">${name}</span><div class="bar">${arrived}${piece(lost, "lost")}</div></div>`;
  }).join("");
}

function showNumbers() {
  const { slimfl, vanilla } = found;
  const cell = (value, text) => `<td data-value="${value}">${text}</td>`;
  const row = (key, name, segment, power, threshold, p, D) => `<tr data-key="${key}"><th>${name}</th><td>${segment}</td>${cell(p, p.toFixed(4))}
    ${cell(threshold, infinite(threshold))}${cell(power, power.toFixed(3))}${D === null ? "<td></td>" : cell(D, infinite(D))}</tr>`;
  byId("numbers").tBodies[0].innerHTML = [
    ...slimfl.split.map((share, i) => row(`slimfl-${i + 1}`, i ? "" : "SlimFL", i + 1, share, slimfl.thresholds[i], slimfl.probabilities[i], i ? null : slimfl.D)),
    ...vanilla.map((one, i) => row(`vanilla-${i + 1}`, `Vanilla FL-${one.width}`, i ? `1–${i + 1}` : "1", 1, one.threshold, one.p, one.D)),
  ].join("");
  const drowned = slimfl.thresholds.indexOf(Infinity), problem = byId("problem");
  problem.hidden = drowned < 0;
  problem.textContent = `Segment ${drowned + 1} drowns in the segments after it, however good the channel is: give segment 1 more than ${edge(settings.rate).toFixed(3)} of the power, or choose the optimal split.`;
}

// A plot of its own in `place`; `x` and `y` are scales with their ticks.
function plot(place, x, y, marks, height = 260) {
  const colours = theme(), element = byId(place);
  const made = drawPlot(colours, {
    width: Math.max(260, element.clientWidth), height, marginTop: 22, marginLeft: 54, x, y,
    marks: [...grids(colours, y.ticks, x.ticks), ...marks(colours)],
  });
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", element.dataset.label);
  element.replaceChildren(made);
  return made;
}

const curve = (xs, ys, stroke, dash = "") => Plot.line(xs, { x: (_, i) => xs[i], y: (_, i) => (Number.isFinite(ys[i]) ? Math.min(ys[i], 1e9) : NaN), stroke, strokeWidth: 2.3, strokeDasharray: dash, clip: true });
const dots = (points) => Plot.dot(points.filter(({ shown = true }) => shown), { x: "x", y: "y", fill: "colour", r: 5, stroke: "var(--card)", strokeWidth: 1.5 });
const now = (x) => [Plot.ruleX([x], { stroke: "var(--soft)", strokeDasharray: "2 3" }), Plot.text([x], { x, frameAnchor: "top", dy: -14, text: () => "now", fill: "var(--soft)" })];
const word = (x, text) => Plot.text([text], { x, frameAnchor: "middle", text: (t) => t, fill: "var(--soft)" });
const linear = (label, low, high) => ({ label, domain: [low, high], ticks: 6 });
const log = (label, low, high, ticks) => ({ label, domain: [low, high], type: "log", ticks, tickFormat: String });

function drawLuck() {
  const { slimfl, vanilla } = found, reaches = survival(settings), place = (t) => Math.min(10, Math.max(0.01, t));
  const gains = steps(Math.log(0.01), Math.log(10), 241).map(Math.exp);
  const marks = [
    ...vanilla.map((one, i) => ({ x: place(one.threshold), y: one.p, colour: vanillaColour(i), dash: "5 4" })),
    ...slimfl.thresholds.map((t, i) => ({ x: place(t), y: slimfl.probabilities[i], colour: segmentColour(i, settings.segments), dash: "", shown: t < Infinity })),
  ];
  return plot("luck", log("gain of the channel, mean 1", 0.01, 10, [0.01, 0.1, 1, 10]), linear("chance", 0, 1), () => [
    curve(gains, gains.map(reaches), "var(--ink)"),
    ...marks.filter(({ shown = true }) => shown).map(({ x, y, colour, dash }) => Plot.ruleX([x], { y1: 0, y2: y, stroke: colour, strokeWidth: 1.6, strokeDasharray: dash })),
    dots(marks),
  ]);
}

function drawNoise() {
  const { segments, rate } = settings, reaches = survival(settings);
  const [low, high] = noiseRange(settings, rate), noises = steps(low, high, 161);
  const ratios = noises.map((noise_dbm) => noiseToPower({ ...settings, noise_dbm }));
  const over = (t) => ratios.map((ratio) => reaches(ratio * t));
  return plot("noise", linear("noise power, dBm", low, high), linear("decoding probability", 0, 1), () => [
    ...found.vanilla.map((_, i) => curve(noises, over(target(rate * (i + 1))), vanillaColour(i), "6 4")),
    ...thresholds(found.slimfl.split, rate, 1).map((t, i) => curve(noises, over(t), segmentColour(i, segments))),
    ...now(settings.noise_dbm),
    dots(found.slimfl.probabilities.map((y, i) => ({ x: settings.noise_dbm, y, colour: segmentColour(i, segments) }))),
  ]);
}

function drawSplit() {
  const { rate, segments } = settings, reaches = survival(settings), low = edge(rate);
  const shares = steps(low, 1, 203).slice(1, -1);
  const terms = shares.map((share) => superposed(splitAlong(share, rate, segments), rate, found.ratio, reaches).D);
  const whole = found.vanilla[segments - 1].D, best = superposed(optimalSplit(rate, segments), rate, found.ratio, reaches).D;
  const least = Math.min(...terms, best);
  const reasonable = least < 1e6 ? least : segments;
  const top = Math.max(reasonable + 1.5 * (reasonable - segments), 1.15 * reasonable, whole < 3 * reasonable ? 1.06 * whole : 0);
  return plot("split", linear("λ, segment 1's share of the power", 0, 1), linear("D", segments, top), (colours) => [
    Plot.rect([0], { x1: 0, x2: low, y1: segments, y2: top, fill: colours.grid, fillOpacity: 0.6 }),
    low > 0.22 && word(low / 2, "segment 1 drowns"),
    curve([0, 1], [whole, whole], vanillaColour(segments - 1), "6 4"),
    curve(shares, terms, SLIM),
    ...now(found.slimfl.split[0]),
    dots([{ x: found.slimfl.split[0], y: found.slimfl.D, colour: SLIM, shown: found.slimfl.D <= top }]),
  ]);
}

function drawMap() {
  map = preferenceMap(settings);
  const { noises, rates, preferred, tie } = map, last = rates.length - 1, shades = [SLIM, ...found.vanilla.map((_, i) => vanillaColour(i))];
  const ties = tie.flatMap((row, i) => row.flatMap((is, j) => (is && (i + j) % 2 === 0 ? [[noises[j], rates[i]]] : [])));
  const ends = [noises[0], noises[noises.length - 1]];
  return plot("map", linear("noise power, dBm", ...ends), log("rate of one segment, bit/s/Hz", 0.25, 4, [0.25, 0.5, 1, 2, 4]), () => [
    (_, { scales: { x, y } }) => {
      const box = { x: x.range[0], y: y.range[1], width: x.range[1] - x.range[0], height: y.range[0] - y.range[1] };
      const group = cells(noises.length, rates.length, (i, j) => preferred[last - i][j], shades, box);
      group.setAttribute("opacity", 0.72);
      return group;
    },
    Plot.dot(ties, { x: "0", y: "1", r: 1.2, fill: "var(--ink)", fillOpacity: 0.75 }),
    settings.rate >= 0.25 && settings.rate <= 4 && Plot.text(["★"], { x: settings.noise_dbm, y: settings.rate, text: String, fontSize: 22, fill: "var(--ink)", stroke: "var(--card)", strokeWidth: 4 }),
  ]);
}

function showLegend() {
  legend(byId("legend"), [
    ...found.slimfl.split.map((_, i) => ({ name: `SlimFL, segment ${i + 1}`, colour: segmentColour(i, settings.segments), dash: "" })),
    ...found.vanilla.map((one, i) => ({ name: `Vanilla FL-${one.width}`, colour: vanillaColour(i), dash: "6 4" })),
  ]);
}

function showCommand() {
  const words = ["slimfl link", `--noise-dbm ${settings.noise_dbm}`, `--power-dbm ${settings.power_dbm}`, `--distance-m ${settings.distance_m}`,
    `--path-loss-exponent ${settings.path_loss_exponent}`, `--spectral-efficiency ${settings.rate}`, `--segments ${settings.segments}`, `--devices ${settings.devices}`];
  const split = settings.split === "optimal" ? "optimal" : found.slimfl.split.map((share) => Number(share.toFixed(9))).join(",");
  if (settings.segments > 1) words.push(`--split ${split}`, "--set radio.rates=equal");
  words.push(...fadings[settings.fading].options);
  byId("command").textContent = words.join(" \\\n  ");
}

const shown = {};
function show() {
  settings = read();
  found = describe(settings);
  showControls();
  showAdvice();
  showArrivals();
  showNumbers();
  drawLuck();
  shown.noise = drawNoise();
  if (settings.segments > 1) shown.split = drawSplit();
  if (settings.segments === 2) shown.map = drawMap();
  showLegend();
  showCommand();
}

// Dragging in a plot sets what its axes stand for.
function dragged(id, event) {
  const made = shown[id], box = byId(id).getBoundingClientRect();
  const clip = (value, input) => Math.min(input.max, Math.max(input.min, value));
  const x = made.scale("x").invert(event.clientX - box.left);
  if (id === "split") { form.split.value = "share"; form.share.value = clip(x, form.share); }
  else form.noise_dbm.value = clip(x, form.noise_dbm);
  if (id === "map") form.rate.value = clip(made.scale("y").invert(event.clientY - box.top), form.rate);
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
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
write(JSON.parse(byId("slimfl-link").textContent));
show();
document.documentElement.dataset.drawn = "true";
const preference = () => map;
