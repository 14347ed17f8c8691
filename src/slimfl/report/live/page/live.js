// The page: events come in, the view is drawn at most a few times per second.
import { RunTable } from "./table.js";

const { mount, draw: drawPlot, grids, theme, svg, html } = slimflCharts;
const $ = (id) => document.getElementById(id);
const DRAW_MS = 200; // between two drawings while rounds come in
const DETAILS_MS = 700; // between two requests for details
const POINTS = 60_000; // of all curves together; more would only make the page slow
const DOTS = 20_000; // of gains
const prefixed = (unit, prefixes) => Object.entries(prefixes).map(([prefix, power]) => [10 ** power, prefix + unit]);
const SECONDS = [...prefixed("s", { µ: -6, m: -3, "": 0 }), [60, "min"], [3600, "h"]]; // by size, ascending
export const UNITS = {
  compute_s: SECONDS, airtime_s: SECONDS,
  energy_j: prefixed("J", { n: -9, µ: -6, m: -3, "": 0, k: 3, M: 6, G: 9 }),
  bits: prefixed("bit", { "": 0, k: 3, M: 6, G: 9, T: 12, P: 15 }),
};
const TITLES = { round: "round", compute_s: "computing time", airtime_s: "airtime of all devices", energy_j: "energy of all devices", bits: "data sent by all devices" };
const AXES = Object.keys(TITLES);
const DASHES = ["", "7 4", "2 3", "9 3 2 3"]; // the widest first

// The largest unit of which the value has at least one.
export const unitFor = (units, value) => units.findLast(([size]) => value >= size) ?? units[0];

// The user's choices survive a reload.
const view = { hidden: new Set(), selected: null, sort: ["name", 1], filter: "", axis: "round", narrow: new Set() };
try {
  const kept = JSON.parse(sessionStorage.getItem("slimfl-watch") ?? "{}");
  Object.assign(view, kept, { hidden: new Set(kept.hidden), narrow: new Set(kept.narrow) });
} catch { /* no storage, or values of another version: use the defaults */ }
if (!TITLES[view.axis]) view.axis = "round";
const keep = () => {
  try {
    sessionStorage.setItem("slimfl-watch", JSON.stringify({ ...view, hidden: [...view.hidden], narrow: [...view.narrow] }));
  } catch { /* as above */ }
};

let runs = new Map(), leftOut = 0, details = null, until = Infinity, playing = 0;
const changed = () => { keep(); soon(0); };
const table = new RunTable($("runs"), view, changed);
let chart = null, heat = null;

// --- what is known of the runs, filled by events in pieces of any size

const begun = (about) => ({
  about, now: { state: "waiting", widths: [], rounds: 0, accuracy: {}, delivered: [] }, length: 0,
  x: Object.fromEntries(AXES.map((axis) => [axis, []])),
  accuracy: new Map(), // width -> one number per round, null where it was not evaluated
});

// New runs come, vanished ones go, the others keep their rounds.
function listed(data) {
  runs = new Map(data.runs.map((about) => [about.key, Object.assign(runs.get(about.key) ?? begun(about), { about })]));
  leftOut = data.left_out;
}

// Rounds of one run from a certain one on; what the page has from there on is replaced.
// False if rounds in between are missing: then everything has to be requested again.
function received({ run: key, from, now, rows }) {
  const run = runs.get(key);
  if (!run || from > run.length) return false;
  if (from === 0) run.accuracy.clear();
  for (const width of now.widths) if (!run.accuracy.has(width)) run.accuracy.set(width, Array(from).fill(null));
  for (const values of [...Object.values(run.x), ...run.accuracy.values()]) values.length = from;
  rows.forEach(([accuracy, ...sums], i) => {
    now.widths.forEach((width, w) => run.accuracy.get(width).push(accuracy ? accuracy[w] : null));
    [from + i + 1, ...sums].forEach((value, a) => run.x[AXES[a]].push(value));
  });
  return Object.assign(run, { now, length: from + rows.length });
}

// --- the accuracy of all shown runs

const shown = () => [...runs.values()].filter((run) => run.about.name !== undefined && !view.hidden.has(run.about.key));

// The lowest and the highest of every few points, so that no peak is lost.
function thinned(ys, most) {
  const kept = ys.map((_, i) => i).filter((i) => ys[i] !== null), size = Math.ceil((2 * kept.length) / most);
  if (kept.length <= most) return kept;
  const picked = [];
  for (let i = 0; i < kept.length; i += size) {
    const some = kept.slice(i, i + size).sort((a, b) => ys[a] - ys[b]);
    picked.push(...new Set([some[0], some[some.length - 1]].sort((a, b) => a - b)));
  }
  return picked;
}

function described(visible, widths) {
  const lines = visible.flatMap((run) => widths.filter((width) => run.accuracy.has(width) && !view.narrow.has(width)).map((width) => ({ run, width })));
  const right = Math.max(0, ...visible.map((run) => run.x[view.axis].at(-1) ?? 0)), whole = view.axis === "round";
  const [size, unit] = whole ? [1, ""] : unitFor(UNITS[view.axis], right / 2);
  const [xs, series, every] = [[], [], []];
  let points = 0;
  for (const { run, width } of lines) {
    const ys = run.accuracy.get(width), seen = ys.slice(0, Math.min(run.length, until));
    for (const y of ys) if (y !== null) every.push(y);
    points += seen.filter((y) => y !== null).length;
    const kept = thinned(seen, Math.max(100, POINTS / lines.length));
    xs.push(kept.map((i) => run.x[view.axis][i] / size));
    series.push({ name: `${run.about.name}, ${width}, seed ${run.about.seed} (${run.about.path})`, colour: run.about.colour, dash: DASHES[widths.indexOf(width) % DASHES.length], x: [xs.length - 1], y: kept.map((i) => 100 * seen[i]) });
  }
  const [low, high] = every.reduce(([a, b], y) => [Math.min(a, y), Math.max(b, y)], [1, 0]), room = Math.max(0.01, (high - low) * 0.05);
  return {
    points, kind: "curves", height: $("accuracy").clientHeight,
    // of all rounds, so that a replay does not move the axes
    range: low <= high ? [100 * Math.max(0, low - room), 100 * Math.min(1, high + room)] : [0, 100],
    domain: [whole ? 1 : 0, Math.max(right / size, whole ? 2 : 0) || 1],
    x: [{ label: unit ? `${TITLES[view.axis]} in ${unit}` : TITLES[view.axis], whole, unit }], y: { label: "accuracy, %", unit: "%", decimals: 2 }, xs, series,
  };
}

function draw() {
  const start = performance.now(), all = [...runs.values()], visible = shown();
  const widths = [...new Set(all.flatMap((run) => [...run.accuracy.keys()]))].sort((a, b) => parseFloat(b) - parseFloat(a));
  choices(widths);
  const plot = described(visible, widths);
  if (chart) chart.replace(plot); else chart = mount($("accuracy"), plot, "accuracy", true);
  Object.assign($("accuracy").dataset, { lines: plot.series.length, points: plot.points, job: Number($("accuracy").dataset.job ?? 0) + 1 });
  const index = theme().index, names = new Map(visible.map((run) => [run.about.name, run.about.colour]));
  const dashes = widths.map((name, i) => ({ name, dash: DASHES[i % DASHES.length] })).filter(({ name }) => !view.narrow.has(name));
  legend($("legend"), [...[...names].map(([name, pair]) => ({ name, colour: pair[index] })), ...dashes]);
  table.update(all, index);
  const most = Math.max(1, ...visible.map((run) => run.length));
  $("until").max = most;
  if (until === Infinity) $("until").value = most;
  $("until-text").textContent = until === Infinity ? "all" : String(Math.floor(until));
  $("empty").hidden = all.length > 0;
  $("left-out").hidden = !leftOut;
  $("left-out").textContent = `${leftOut} older runs are not shown; watch fewer folders to see them.`;
  $("report-all").hidden = !visible.length;
  $("report-all").href = `report?${visible.map((run) => `run=${run.about.key}`).join("&")}`;
  const running = all.filter((run) => run.now.state === "running").length;
  counts = `${all.length} ${all.length === 1 ? "run" : "runs"}, ${running} running`;
  status();
  select(all);
  [drawnAt, drawMs] = [performance.now(), performance.now() - start];
}

function legend(list, entries) {
  const text = JSON.stringify(entries);
  if (list.dataset.text === text) return;
  list.dataset.text = text;
  list.replaceChildren(...entries.map(({ name, colour, dash }) => {
    const item = html("li"), mark = svg("svg", { width: dash === undefined ? 13 : 34, height: 10, "aria-hidden": "true" });
    mark.append(dash === undefined ? svg("rect", { width: 12, height: 10, rx: 2, fill: colour })
      : svg("line", { x1: 1, x2: 33, y1: 5, y2: 5, stroke: "currentColor", "stroke-width": 1.7, "stroke-dasharray": dash }));
    item.append(mark, name);
    return item;
  }));
}

// A check box per width.
function choices(widths) {
  const holder = $("widths");
  if (holder.dataset.widths === widths.join()) return;
  holder.dataset.widths = widths.join();
  holder.replaceChildren(...(widths.length > 1 ? widths : []).map((width) => {
    const label = html("label"), box = html("input");
    Object.assign(box, { type: "checkbox", checked: !view.narrow.has(width) });
    box.addEventListener("change", () => { view.narrow[box.checked ? "delete" : "add"](width); changed(); });
    label.append(box, ` ${width}`);
    return label;
  }));
}

// --- replay: only the first rounds are drawn

$("until").addEventListener("input", ({ target: { value, max } }) => {
  playing = 0;
  until = value === max ? Infinity : Number(value);
  draw();
});
$("replay").addEventListener("click", () => {
  const me = ++playing, begin = performance.now(), seconds = 8;
  const step = () => {
    if (me !== playing) return;
    const share = (performance.now() - begin) / (1000 * seconds), most = Number($("until").max);
    until = share >= 1 ? Infinity : Math.max(1, Math.round(share * most));
    if (until !== Infinity) $("until").value = until;
    draw();
    if (share < 1) setTimeout(step, 60);
  };
  step();
});

// --- the selected run

function select(all) {
  const readable = all.filter((run) => run.about.name !== undefined);
  const chosen = readable.some((run) => run.about.key === view.selected) ? view.selected
    : (readable.find((run) => run.now.state === "running") ?? readable[0])?.about.key;
  $("details").hidden = !chosen;
  if (!chosen) return;
  const options = readable.map((run) => [`${run.about.name}, seed ${run.about.seed} (${run.about.path})`, run.about.key]);
  const list = $("selected"), text = JSON.stringify(options);
  if (list.dataset.text !== text) {
    list.dataset.text = text;
    list.replaceChildren(...options.map(([words, key]) => new Option(words, key)));
  }
  list.value = chosen;
  if (details?.key !== chosen) details = { key: chosen, from: 0, codes: [], gains: [], asked: -Infinity, length: 0 };
  detail();
}

// Request the missing rounds of the details; existing ones are drawn at once.
async function detail() {
  const mine = details, run = runs.get(mine.key);
  if (mine.devices) showDetails(mine);
  if (mine.busy || mine.length >= run.length) return;
  const wait = mine.asked + DETAILS_MS - performance.now();
  mine.busy = true;
  if (wait > 0) await new Promise((done) => setTimeout(done, wait));
  mine.asked = performance.now();
  try {
    const answer = await fetch(`details/${mine.key}?after=${mine.length}`);
    if (answer.ok && details === mine) {
      const { from, codes, gains, ...rest } = await answer.json();
      if (from !== mine.length) Object.assign(mine, { from, codes: [], gains: [] });
      mine.codes.push(...codes);
      mine.gains.push(...gains);
      Object.assign(mine, rest, { length: from + codes.length });
    }
  } catch { /* the server is down; asked again after the reconnection */ }
  mine.busy = false;
  if (details === mine && mine.devices) showDetails(mine);
}

function showDetails(mine) {
  const run = runs.get(mine.key), visible = Math.max(0, Math.min(mine.codes.length, until - mine.from));
  if (!run) return;
  const known = mine.gains.some((row) => row.length), { index } = theme();
  $("no-gains").hidden = known;
  $("gains").hidden = !known;
  const drawn = `${mine.from} ${mine.length} ${visible} ${index} ${$("arrivals").clientWidth}`;
  if (mine.drawn === drawn) return;
  mine.drawn = drawn;
  legend($("codes"), mine.words.map((name, i) => ({ name, colour: mine.colours[i][index] })));
  const plot = {
    kind: "heat", height: $("arrivals").clientHeight, x: [{ label: "round" }], y: { label: "device" },
    rounds: mine.codes.map((_, j) => mine.from + j + 1), devices: mine.devices, words: mine.words, colours: mine.colours, gains: mine.gains,
    // columns are rounds; all of them keep their place in a replay
    cells: mine.devices.map((_, i) => mine.codes.map((codes, j) => (j < visible ? codes[i].toString(36) : ""))),
  };
  if (heat) heat.replace(plot); else heat = mount($("arrivals"), plot, "arrivals", true);
  Object.assign($("arrivals").dataset, { rounds: visible, devices: mine.devices.length });
  if (known) showGains(mine, visible);
  const fewer = mine.devices.length < run.about.devices ? `${mine.devices.length} of ${run.about.devices} devices, evenly spaced. ` : "";
  $("details-note").textContent = fewer + (mine.from ? `The last ${mine.codes.length} rounds. ` : "")
    + (mine.thresholds.length ? "" : "Thresholds are known only for the built-in channel and methods.");
}

function showGains({ gains, codes, colours, thresholds, words, from }, visible) {
  const all = gains.slice(0, visible).flatMap((row, j) => row.flatMap((gain, i) => (gain === null ? [] : [[from + j + 1, gain, codes[j][i]]])));
  const step = Math.ceil(all.length / DOTS), screen = theme(), place = $("gains");
  const known = [...gains.flat().filter((gain) => gain > 0), ...thresholds.flatMap(({ gain }) => [gain / 2, gain * 2])];
  const [low, high] = known.reduce(([a, b], gain) => [Math.min(a, gain), Math.max(b, gain)], [Infinity, 1e-300]);
  const domain = [10 ** Math.floor(Math.log10(Math.max(low, high / 1e4))), 10 ** Math.ceil(Math.log10(high))]; // tiny gains would squeeze the rest
  const powers = Array.from({ length: Math.round(Math.log10(domain[1] / domain[0])) + 1 }, (_, i) => Number((domain[0] * 10 ** i).toPrecision(2)));
  const dots = (_, { scales: { x, y } }) => {
    const group = svg("g"), paths = colours.map(() => "");
    all.forEach(([round, gain, code], i) => { if (i % step === 0) paths[code] += `M${x.apply(round).toFixed(1)} ${y.apply(Math.max(gain, domain[0])).toFixed(1)}h0`; });
    paths.forEach((d, code) => d && group.append(svg("path", { d, stroke: colours[code][screen.index], "stroke-width": 3, "stroke-linecap": "square" })));
    return group;
  };
  place.replaceChildren(drawPlot(screen, {
    width: Math.max(220, place.clientWidth), height: place.clientHeight,
    x: { label: "round", domain: [from + 0.5, from + codes.length + 0.5], ticks: Math.min(codes.length, 12), tickFormat: (v) => (Number.isInteger(v) ? String(v) : "") },
    y: { label: "gain", type: "log", domain, ticks: powers, tickFormat: String },
    marks: [
      ...grids(screen, powers), dots,
      Plot.ruleY(thresholds, { y: "gain", stroke: screen.ink, strokeWidth: 1.5, strokeDasharray: "6 4" }),
      ...thresholds.map((one, i) => Plot.text([one], {
        y: "gain", frameAnchor: i % 2 ? "right" : "left", dy: i ? -8 : 9, dx: i % 2 ? -4 : 4, fill: screen.ink, stroke: screen.card, strokeWidth: 4,
        text: ({ gain, segments }) => `${words[segments]}: ${Number(gain.toPrecision(3))}`,
      })),
    ],
  }));
  Object.assign(place.dataset, { points: all.length, thresholds: thresholds.length });
}

// --- controls

$("axis").value = view.axis;
$("axis").addEventListener("change", ({ target }) => { view.axis = target.value; changed(); });
$("filter").value = view.filter;
$("filter").addEventListener("input", ({ target }) => { view.filter = target.value; changed(); });
$("selected").addEventListener("change", ({ target }) => { view.selected = target.value; changed(); });
for (const [id, act] of [["show-all", "delete"], ["hide-all", "add"]]) {
  $(id).addEventListener("click", () => { for (const key of table.rows.keys()) view.hidden[act](key); changed(); });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => soon(0));
addEventListener("resize", () => soon(0));

// --- events

let drawnAt = -Infinity, drawMs = 0, planned = 0, counts = "", connection = "connecting", source;

// A drawing takes at most a third of the time, however many events come.
function soon(pause = DRAW_MS) {
  planned ||= setTimeout(() => { planned = 0; draw(); }, Math.max(0, drawnAt + Math.max(pause, 2 * drawMs) - performance.now()));
}

function status(state = connection) {
  connection = state;
  const words = { connecting: "connecting", live: counts, lost: `${counts} · connection lost, trying again` };
  $("status").className = connection;
  $("status").lastElementChild.textContent = words[connection];
}

function connect() {
  source?.close();
  source = new EventSource("events");
  const on = (kind, handle) => source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
  on("runs", (data) => { listed(data); soon(); });
  on("rounds", (data) => {
    if (!received(data)) { runs = new Map(); connect(); return; } // a gap: ask for everything
    if (details?.key === data.run && data.from < details.length) { // cut: earlier details are invalid
      const stay = Math.max(0, data.from - details.from);
      details = { ...details, busy: false, drawn: "", length: details.from + stay, codes: details.codes.slice(0, stay), gains: details.gains.slice(0, stay) };
      if (!stay) Object.assign(details, { from: 0, length: 0 });
    }
    soon();
  });
  on("batch", (data) => {
    if (data.caught_up) document.documentElement.dataset.caughtUp = "true";
    status("live");
    soon();
  });
  source.addEventListener("error", () => {
    status("lost");
    // refused, for example by a server with another token: the browser does not try again itself
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

connect();
