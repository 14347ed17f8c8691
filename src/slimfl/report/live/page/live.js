// The page: events come in, the view is drawn at most a few times per second.
import { RunTable } from "./table.js";

const { mount, draw: drawPlot, grids, theme, html, legend } = slimflCharts;
const $ = (id) => document.getElementById(id);
const DRAW_MS = 200; // between two drawings while rounds come in
const DETAILS_MS = 700; // between two requests for details
const DOTS = 5_000; // of gains
const DASHES = ["", "7 4", "2 3", "9 3 2 3"]; // the widest first

// The user's choices survive a reload.
const view = { hidden: new Set(), selected: null, sort: ["name", 1], filter: "", axis: "round", narrow: new Set() };
try {
  const kept = JSON.parse(sessionStorage.getItem("slimfl-watch") ?? "{}");
  Object.assign(view, kept, { hidden: new Set(kept.hidden), narrow: new Set(kept.narrow) });
} catch { /* no storage, or values of another version: use the defaults */ }
const keep = () => {
  try {
    sessionStorage.setItem("slimfl-watch", JSON.stringify({ ...view, hidden: [...view.hidden], narrow: [...view.narrow] }));
  } catch { /* as above */ }
};

// What is known of each run: `about` from the list of runs, the rest from its own events.
let runs = new Map(), list = { runs: [], left_out: 0, axes: {}, columns: [] }, details = null, until = Infinity, playing = 0;
const changed = () => { keep(); soon(0); };
const table = new RunTable($("runs"), view, changed);
let chart = null, heat = null;

// --- the accuracy of all shown runs

const label = ({ about }) => `${about.name}, seed ${about.seed} (${about.path})`;
const shown = () => [...runs.values()].filter((run) => run.about.name !== undefined && !view.hidden.has(run.about.key));

function described(visible, widths) {
  const axis = list.axes[view.axis] ?? list.axes.round, xs = [], series = [], every = [];
  for (const run of visible) {
    const places = run.x[view.axis] ?? run.x.round, drawn = run.x.round.filter((round) => round <= until).length;
    xs.push(places.slice(0, drawn));
    for (const width of widths.filter((name) => run.y[name] && !view.narrow.has(name))) {
      for (const y of run.y[width]) every.push(y);
      series.push({ name: `${run.about.name}, ${width}, seed ${run.about.seed} (${run.about.path})`, colour: run.about.colour, dash: DASHES[widths.indexOf(width) % DASHES.length], x: [xs.length - 1], y: run.y[width].slice(0, drawn) });
    }
  }
  const [low, high] = every.reduce(([a, b], y) => [Math.min(a, y), Math.max(b, y)], [100, 0]), room = Math.max(1, (high - low) * 0.05);
  const right = Math.max(0, ...visible.map((run) => (run.x[view.axis] ?? run.x.round).at(-1) ?? 0));
  return {
    kind: "curves", height: $("accuracy").clientHeight,
    // of all rounds, so that a replay does not move the axes
    range: low <= high ? [Math.max(0, low - room), Math.min(100, high + room)] : [0, 100],
    domain: axis.whole ? [1, Math.max(right, 2)] : [0, right || 1],
    x: [axis], y: { label: "accuracy, %", unit: "%", decimals: 2 }, xs, series,
  };
}

function draw() {
  const start = performance.now(), all = [...runs.values()], visible = shown();
  const widths = [...new Set(all.flatMap((run) => Object.keys(run.y)))].sort((a, b) => parseFloat(b) - parseFloat(a));
  choices(widths);
  const plot = described(visible, widths), place = $("accuracy");
  if (chart) chart.replace(plot); else chart = mount(place, plot, "accuracy", true);
  const points = plot.series.reduce((sum, { y }) => sum + y.length, 0);
  Object.assign(place.dataset, { lines: plot.series.length, points, job: Number(place.dataset.job ?? 0) + 1 });
  const index = theme().index, names = new Map(visible.map((run) => [run.about.name, run.about.colour]));
  const dashes = widths.map((name, i) => ({ name, dash: DASHES[i % DASHES.length] })).filter(({ name }) => !view.narrow.has(name));
  legend($("legend"), [...[...names].map(([name, pair]) => ({ name, colour: pair[index] })), ...dashes]);
  table.update(all, list.columns, index);
  const most = Math.max(1, ...visible.map((run) => run.rounds));
  $("until").max = most;
  if (until === Infinity) $("until").value = most;
  $("until-text").textContent = until === Infinity ? "all" : String(Math.floor(until));
  $("empty").hidden = all.length > 0;
  $("left-out").hidden = !list.left_out;
  $("left-out").textContent = `${list.left_out} older runs are not shown; watch fewer folders to see them.`;
  $("report-all").hidden = !visible.length;
  $("report-all").href = `report?${visible.map((run) => `run=${run.about.key}`).join("&")}`;
  const running = all.filter((run) => run.state === "running").length;
  counts = `${all.length} ${all.length === 1 ? "run" : "runs"}, ${running} running`;
  status();
  select(all);
  [drawnAt, drawMs] = [performance.now(), performance.now() - start];
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
  const chosen = readable.find((run) => run.about.key === view.selected) ?? readable.find((run) => run.state === "running") ?? readable[0];
  $("details").hidden = !chosen;
  if (!chosen) return;
  const options = readable.map((run) => [label(run), run.about.key]), text = JSON.stringify(options);
  if ($("selected").dataset.text !== text) {
    $("selected").dataset.text = text;
    $("selected").replaceChildren(...options.map(([words, key]) => new Option(words, key)));
  }
  $("selected").value = chosen.about.key;
  if (details?.key !== chosen.about.key) details = { key: chosen.about.key, stale: true };
  if (details.heat) showDetails(details);
  ask();
}

// Request what arrived in the selected run, after news of it and not too often.
async function ask() {
  const mine = details;
  if (mine.busy || !mine.stale) return;
  Object.assign(mine, { busy: true, stale: false });
  try {
    const answer = await fetch(`details/${mine.key}`);
    if (answer.ok) Object.assign(mine, await answer.json());
  } catch { /* the server is down; its news after the reconnection ask again */ }
  if (details === mine && mine.heat) showDetails(mine);
  setTimeout(() => { mine.busy = false; if (details === mine) ask(); }, DETAILS_MS);
}

function showDetails(mine) {
  const visible = Math.max(0, Math.min(mine.heat.rounds.length, until - mine.from)), known = mine.gains.some((row) => row.length);
  $("no-gains").hidden = known;
  $("gains").hidden = !known;
  legend($("codes"), mine.heat.words.map((name, i) => ({ name, colour: mine.heat.colours[i][theme().index] })));
  // all rounds keep their place in a replay
  const plot = { ...mine.heat, gains: mine.gains, height: $("arrivals").clientHeight, cells: mine.heat.cells.map((row) => row.slice(0, visible)) };
  if (heat) heat.replace(plot); else heat = mount($("arrivals"), plot, "arrivals", true);
  Object.assign($("arrivals").dataset, { rounds: visible, devices: plot.devices.length });
  if (known) showGains(mine, visible);
  const devices = runs.get(mine.key)?.about.devices, fewer = plot.devices.length < devices ? `${plot.devices.length} of ${devices} devices, evenly spaced. ` : "";
  $("details-note").textContent = fewer + (mine.from ? `The last ${plot.rounds.length} rounds. ` : "")
    + (mine.thresholds.length ? "" : "Thresholds are known only for the built-in channel and methods.");
}

function showGains({ gains, heat: { cells, colours, words, rounds }, thresholds, from }, visible) {
  const all = gains.slice(0, visible).flatMap((row, j) => row.flatMap((gain, i) => (gain === null ? [] : [[rounds[j], gain, parseInt(cells[i][j], 36)]])));
  const step = Math.ceil(all.length / DOTS), screen = theme(), place = $("gains");
  const known = [...gains.flat().filter((gain) => gain > 0), ...thresholds.flatMap(({ gain }) => [gain / 2, gain * 2])];
  const [low, high] = known.reduce(([a, b], gain) => [Math.min(a, gain), Math.max(b, gain)], [Infinity, 1e-300]);
  const domain = [10 ** Math.floor(Math.log10(Math.max(low, high / 1e4))), 10 ** Math.ceil(Math.log10(high))]; // tiny gains would squeeze the rest
  const powers = Array.from({ length: Math.round(Math.log10(domain[1] / domain[0])) + 1 }, (_, i) => Number((domain[0] * 10 ** i).toPrecision(2)));
  const dots = all.filter((_, i) => i % step === 0);
  place.replaceChildren(drawPlot(screen, {
    width: Math.max(220, place.clientWidth), height: place.clientHeight,
    x: { label: "round", domain: [from + 0.5, from + rounds.length + 0.5], ticks: Math.min(rounds.length, 12), tickFormat: (v) => (Number.isInteger(v) ? String(v) : "") },
    y: { label: "gain", type: "log", domain, ticks: powers, tickFormat: String },
    marks: [
      ...grids(screen, powers),
      Plot.dot(dots, { x: "0", y: ([, gain]) => Math.max(gain, domain[0]), r: 1.5, symbol: "square", fill: ([, , code]) => colours[code][screen.index] }),
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

for (const [id, key, kind] of [["axis", "axis", "change"], ["filter", "filter", "input"], ["selected", "selected", "change"]]) {
  $(id).value = view[key];
  $(id).addEventListener(kind, ({ target }) => { view[key] = target.value; changed(); });
}
for (const [id, act] of [["show-all", "delete"], ["hide-all", "add"]]) {
  $(id).addEventListener("click", () => { for (const key of table.rows.keys()) view.hidden[act](key); changed(); });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => soon(0));
addEventListener("resize", () => soon(0));

// --- events

let drawnAt = -Infinity, drawMs = 0, planned = 0, counts = "", connection = "connecting";

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
  const source = new EventSource("events"), on = (kind, handle) => source.addEventListener(kind, (event) => { handle(JSON.parse(event.data)); soon(); });
  on("runs", (data) => { // new runs come, vanished ones go
    list = data;
    runs = new Map(data.runs.map((about) => [about.key, { state: "waiting", rounds: 0, cells: [], x: { round: [] }, y: {}, ...runs.get(about.key), about }]));
  });
  on("run", (data) => {
    Object.assign(runs.get(data.key), data);
    if (details?.key === data.key) details.stale = true;
  });
  on("batch", (data) => {
    if (data.caught_up) document.documentElement.dataset.caughtUp = "true";
    status("live");
  });
  source.addEventListener("error", () => {
    status("lost");
    // refused, for example by a server with another token: the browser does not try again itself
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

connect();
