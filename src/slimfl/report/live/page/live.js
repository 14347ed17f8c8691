// The page: events come in, the view is drawn at most a few times per second.
import { Runs } from "./runs.js";
import { LineChart, themed } from "./chart.js";
import { BITS, JOULES, SECONDS } from "./units.js";
import { HeatMap, Gains } from "./arrivals.js";
import { RunTable } from "./table.js";

const $ = (id) => document.getElementById(id);
const DRAW_MS = 200; // between two drawings while rounds come in
const DETAILS_MS = 700; // between two requests for details
const AXES = {
  round: { title: "round", whole: true, units: [[1, ""]] },
  compute_s: { title: "computing time", units: SECONDS },
  airtime_s: { title: "airtime of all devices", units: SECONDS },
  energy_j: { title: "energy of all devices", units: JOULES },
  bits: { title: "data sent by all devices", units: BITS },
};
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]]; // the widest first

// The user's choices survive a reload.
const view = { hidden: new Set(), selected: null, sort: ["name", 1], filter: "", axis: "round", narrow: new Set() };
try {
  const kept = JSON.parse(sessionStorage.getItem("slimfl-watch") ?? "{}");
  Object.assign(view, kept, { hidden: new Set(kept.hidden), narrow: new Set(kept.narrow) });
} catch { /* no storage, or values of another version: use the defaults */ }
if (!AXES[view.axis]) view.axis = "round";
const keep = () => {
  try {
    sessionStorage.setItem("slimfl-watch", JSON.stringify({ ...view, hidden: [...view.hidden], narrow: [...view.narrow] }));
  } catch { /* as above */ }
};

let runs = new Runs(), details = null, until = Infinity, playing = 0;
const changed = () => { keep(); draw(); };
const table = new RunTable($("runs"), view, changed);
const chart = new LineChart($("accuracy"), "Accuracy of the shown runs");
const heat = new HeatMap($("arrivals"), "What arrived, by round and device");
const gains = new Gains($("gains"), "Gains of the devices by round, and the thresholds of the segments");

const shown = () => runs.all().filter((run) => run.about.name !== undefined && !view.hidden.has(run.about.key));

// On a dark page the colours of the report are too dark for thin lines.
function readable(colour) {
  if (!matchMedia("(prefers-color-scheme: dark)").matches) return colour;
  const light = [1, 3, 5].map((i) => Math.round(parseInt(colour.slice(i, i + 2), 16) * 0.68 + 255 * 0.32));
  return `rgb(${light.join()})`;
}

function draw() {
  drawnAt = performance.now();
  const all = runs.all(), visible = shown();
  for (const run of all) if (run.about.colour) run.colour = readable(run.about.colour);
  const widths = [...new Set(all.flatMap((run) => [...run.accuracy.keys()]))].sort((a, b) => parseFloat(b) - parseFloat(a));
  choices(widths);
  const lines = visible.flatMap((run) => widths
    .filter((width) => run.accuracy.has(width) && !view.narrow.has(width))
    .map((width) => ({
      name: `${run.about.name}, ${width}, seed ${run.about.seed}\n${run.about.path}`,
      x: run.x[view.axis], y: run.accuracy.get(width), n: Math.min(run.length, until),
      colour: run.colour, dash: DASHES[widths.indexOf(width) % DASHES.length],
    })));
  chart.show(lines, AXES[view.axis]);
  legend(visible, widths);
  table.update(all);
  slider(visible);
  $("empty").hidden = all.length > 0;
  $("left-out").hidden = !runs.leftOut;
  $("left-out").textContent = `${runs.leftOut} older runs are not shown; watch fewer folders to see them.`;
  $("report-all").hidden = !visible.length;
  $("report-all").href = `report?${visible.map((run) => `run=${run.about.key}`).join("&")}`;
  const running = all.filter((run) => run.now.state === "running").length;
  counts = `${all.length} ${all.length === 1 ? "run" : "runs"}, ${running} running`;
  status();
  select(all);
}

function items(list, entries, mark) {
  const text = JSON.stringify(entries) + themed("--ink");
  if (list.dataset.text === text) return;
  list.dataset.text = text;
  list.replaceChildren(...entries.map((entry) => {
    const item = document.createElement("li");
    item.append(mark(entry), entry.name);
    return item;
  }));
}

const swatch = ({ colour }) => {
  const mark = document.createElement("i");
  mark.style.background = colour;
  return mark;
};

function stroke({ dash }) {
  const mark = document.createElement("canvas");
  mark.width = 68; mark.height = 20;
  const context = mark.getContext("2d");
  context.scale(2, 2);
  context.setLineDash(dash);
  context.strokeStyle = themed("--ink");
  context.lineWidth = 1.7;
  context.moveTo(1, 5); context.lineTo(33, 5); context.stroke();
  return mark;
}

function legend(visible, widths) {
  const names = new Map(visible.map((run) => [run.about.name, run.colour]));
  const entries = [
    ...[...names].map(([name, colour]) => ({ name, colour })),
    ...widths.filter((width) => !view.narrow.has(width)).map((width) => ({ name: width, dash: DASHES[widths.indexOf(width) % DASHES.length] })),
  ];
  items($("legend"), entries, (entry) => (entry.dash ? stroke(entry) : swatch(entry)));
}

// A check box per width.
function choices(widths) {
  const holder = $("widths");
  if (holder.dataset.widths === widths.join()) return;
  holder.dataset.widths = widths.join();
  holder.replaceChildren(...(widths.length > 1 ? widths : []).map((width) => {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.checked = !view.narrow.has(width);
    box.addEventListener("change", () => { view.narrow[box.checked ? "delete" : "add"](width); changed(); });
    label.append(box, ` ${width}`);
    return label;
  }));
}

// --- replay: only the first rounds are drawn

function slider(visible) {
  const most = Math.max(1, ...visible.map((run) => run.length)), slide = $("until");
  slide.max = most;
  if (until === Infinity) slide.value = most;
  $("until-text").textContent = until === Infinity ? "all" : String(Math.floor(until));
}
$("until").addEventListener("input", (event) => {
  playing = 0;
  const { value, max } = event.target;
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
  const readableRuns = all.filter((run) => run.about.name !== undefined);
  const known = readableRuns.some((run) => run.about.key === view.selected);
  const chosen = known ? view.selected
    : (readableRuns.find((run) => run.now.state === "running") ?? readableRuns[0])?.about.key;
  $("details").hidden = !chosen;
  if (!chosen) return;
  const options = readableRuns.map((run) => ({ key: run.about.key, text: `${run.about.name}, seed ${run.about.seed} (${run.about.path})` }));
  const list = $("selected"), text = JSON.stringify(options);
  if (list.dataset.text !== text) {
    list.dataset.text = text;
    list.replaceChildren(...options.map(({ key, text: words }) => new Option(words, key)));
  }
  list.value = chosen;
  if (details?.key !== chosen) details = { key: chosen, from: 0, codes: [], gains: [], asked: -Infinity, length: 0 };
  detail();
}

// Request the missing rounds of the details; existing ones are drawn at once.
async function detail() {
  const mine = details, run = runs.byKey.get(mine.key);
  if (mine.devices) showDetails(mine);
  if (mine.busy || mine.length >= run.length) return;
  const wait = mine.asked + DETAILS_MS - performance.now();
  mine.busy = true;
  if (wait > 0) await new Promise((done) => setTimeout(done, wait));
  mine.asked = performance.now();
  try {
    const answer = await fetch(`details/${mine.key}?after=${mine.length}`);
    if (answer.ok && details === mine) {
      const { from, codes, gains: new_gains, ...rest } = await answer.json();
      if (from !== mine.length) Object.assign(mine, { from, codes: [], gains: [] });
      mine.codes.push(...codes);
      mine.gains.push(...new_gains);
      Object.assign(mine, rest, { length: from + codes.length });
    }
  } catch { /* the server is down; asked again after the reconnection */ }
  mine.busy = false;
  if (details === mine && mine.devices) showDetails(mine);
}

function showDetails(mine) {
  const run = runs.byKey.get(mine.key);
  if (!run) return;
  const known = mine.gains.some((row) => row.length);
  $("no-gains").hidden = known;
  $("gains").hidden = !known;
  const drawn = `${mine.from} ${mine.length} ${Math.min(until, mine.length)} ${themed("--ink")}`;
  if (mine.drawn === drawn) return;
  mine.drawn = drawn;
  items($("codes"), mine.words.map((name, i) => ({ name, colour: mine.colours[i] })), swatch);
  heat.show(mine, until);
  if (known) gains.show(mine, until);
  const fewer = mine.devices.length < run.about.devices ? `${mine.devices.length} of ${run.about.devices} devices, evenly spaced. ` : "";
  $("details-note").textContent = fewer + (mine.from ? `The last ${mine.codes.length} rounds. ` : "")
    + (mine.thresholds.length ? "" : "Thresholds are known only for the built-in channel and methods.");
}

// --- controls

$("axis").value = view.axis;
$("axis").addEventListener("change", (event) => { view.axis = event.target.value; changed(); });
$("filter").value = view.filter;
$("filter").addEventListener("input", (event) => { view.filter = event.target.value; changed(); });
$("selected").addEventListener("change", (event) => { view.selected = event.target.value; changed(); });
const filtered = () => [...table.rows.keys()];
$("show-all").addEventListener("click", () => { filtered().forEach((key) => view.hidden.delete(key)); changed(); });
$("hide-all").addEventListener("click", () => { filtered().forEach((key) => view.hidden.add(key)); changed(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());

// --- events

let drawnAt = -Infinity, planned = 0, counts = "", connection = "connecting", source;

function soon() {
  planned ||= setTimeout(() => { planned = 0; draw(); }, Math.max(0, drawnAt + DRAW_MS - performance.now()));
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
  on("runs", (data) => { runs.list(data); soon(); });
  on("rounds", (data) => {
    if (!runs.rounds(data)) { runs = new Runs(); connect(); return; } // a gap: ask for everything
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
