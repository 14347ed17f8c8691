// The table of runs: sorted by any column, each run shown or hidden, one of them selected.
import { UNITS, unitFor } from "./live.js";

const words = new Intl.Collator("en", { numeric: true }); // run-2 before run-10
const percent = (value) => (value == null ? "" : (100 * value).toFixed(1));
const unit = (id) => (value) => {
  const [size, name] = unitFor(UNITS[id], value);
  return `${Number((value / size).toPrecision(3))} ${name}`;
};

function columns(runs) {
  const widths = [...new Set(runs.flatMap((run) => Object.keys(run.now.accuracy)))]
    .sort((a, b) => parseFloat(a) - parseFloat(b));
  const segments = Math.max(0, ...runs.map((run) => run.now.delivered.length));
  return [
    { id: "name", title: "run", text: true, value: (r) => `${r.about.name ?? "?"} ${r.about.seed ?? ""} ${r.about.path}` },
    { id: "state", title: "state", text: true, value: (r) => r.now.state },
    { id: "rounds", title: "rounds", value: (r) => r.now.rounds, show: (v, r) => `${v} / ${r.about.rounds ?? "?"}` },
    ...widths.map((width) => ({ id: `accuracy.${width}`, title: `accuracy % ${width}`,
      value: (r) => r.now.accuracy[width], show: percent })),
    ...Array.from({ length: segments }, (_, s) => ({ id: `delivered.${s + 1}`, title: `delivered % segment\u00a0${s + 1}`,
      value: (r) => r.now.delivered[s], show: percent })),
    ...Object.entries({ compute_s: "computing", airtime_s: "airtime", energy_j: "energy", bits: "sent" })
      .map(([id, title]) => ({ id, title, value: (r) => r.now[id], show: unit(id) })),
  ];
}

const make = (tag, parent, className = "") => {
  const made = parent.appendChild(document.createElement(tag));
  made.className = className;
  return made;
};
const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };

export class RunTable {
  // view: {hidden: Set, selected, sort: [id, direction], filter}; changed() after the user did
  constructor(table, view, changed) {
    [this.head, this.body] = [table.tHead, table.tBodies[0]];
    this.view = view;
    this.changed = changed;
    this.rows = new Map();
    this.shape = "";
  }

  update(runs, index) {
    this.index = index;
    const wanted = columns(runs), shape = wanted.map((c) => c.id).join();
    if (shape !== this.shape) { // other widths: rebuild it
      this.shape = shape;
      this.rows.clear();
      this.body.replaceChildren();
      this.heads(wanted);
    }
    const [id, direction] = this.view.sort, column = wanted.find((c) => c.id === id) ?? wanted[0];
    for (const head of this.head.rows[0].cells) {
      if (head.dataset.id === column.id) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    const wish = this.view.filter.toLowerCase();
    const sorted = runs
      .filter((r) => `${r.about.name} seed ${r.about.seed} ${r.about.path} ${r.now.state}`.toLowerCase().includes(wish))
      .map((run) => [column.value(run), run])
      .sort(([a, left], [b, right]) => {
        if (a == null || b == null) return (a == null) - (b == null); // unknown values last
        const order = typeof a === "string" ? words.compare(a, b) : a - b;
        return order * direction || words.compare(left.about.path, right.about.path);
      });
    const keys = new Set(sorted.map(([, run]) => run.about.key));
    for (const [key, row] of this.rows) if (!keys.has(key)) { row.remove(); this.rows.delete(key); }
    sorted.forEach(([, run], index) => {
      const row = this.rows.get(run.about.key) ?? this.row(run.about.key, wanted);
      this.fill(row, run, wanted);
      if (this.body.rows[index] !== row) this.body.insertBefore(row, this.body.rows[index] ?? null);
    });
  }

  heads(wanted) {
    this.head.replaceChildren();
    const row = make("tr", this.head);
    make("th", row).append("show");
    for (const { id, title, text } of wanted) {
      const head = make("th", row, text ? "text" : "");
      head.dataset.id = id;
      head.scope = "col";
      const button = make("button", head);
      button.type = "button";
      button.textContent = title;
      button.addEventListener("click", () => {
        const [now, direction] = this.view.sort;
        // words from A, numbers from the largest
        this.view.sort = [id, now === id ? -direction : text ? 1 : -1];
        this.changed();
      });
    }
    make("th", row).append("report");
  }

  row(key, wanted) {
    const row = make("tr", this.body);
    row.dataset.key = key;
    row.tabIndex = 0;
    const box = make("input", make("td", row));
    box.type = "checkbox";
    box.addEventListener("change", () => {
      this.view.hidden[box.checked ? "delete" : "add"](key);
      this.changed();
    });
    for (const { id, text } of wanted) {
      const cell = make("td", row, id === "name" ? "text name" : id === "state" ? "text state" : text ? "text" : "");
      cell.dataset.id = id;
      if (id === "name") { make("i", cell); make("span", cell); make("small", cell); }
    }
    const link = make("a", make("td", row));
    link.textContent = "report";
    link.href = `report?run=${key}`;
    link.target = "_blank";
    link.rel = "noopener";
    const select = (event) => {
      if (event.target.closest("a, input")) return;
      this.view.selected = key;
      this.changed();
    };
    row.addEventListener("click", select);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") select(event); });
    this.rows.set(key, row);
    return row;
  }

  fill(row, run, wanted) {
    const hidden = this.view.hidden.has(run.about.key);
    row.classList.toggle("hidden-run", hidden);
    row.classList.toggle("selected", this.view.selected === run.about.key);
    const box = row.cells[0].firstChild;
    box.checked = !hidden;
    box.setAttribute("aria-label", `show ${run.about.path}`);
    wanted.forEach(({ id, value, show }, index) => {
      const cell = row.cells[index + 1], found = value(run);
      if (id === "name") {
        const [swatch, name, path] = cell.children;
        swatch.style.background = run.about.colour?.[this.index] ?? "transparent";
        set(name, run.about.name === undefined ? "unreadable" : `${run.about.name}, seed ${run.about.seed}`);
        set(path, run.about.path);
        cell.title = `${run.about.scene ?? ""}\n${run.about.path}`;
      } else if (id === "state") {
        cell.className = `text state ${found}`;
        set(cell, run.now.problem ? `${found}: ${run.now.problem}` : found);
        cell.title = run.now.problem ?? "";
      } else {
        if (found != null) cell.dataset.value = found; else delete cell.dataset.value;
        set(cell, found == null ? "–" : show(found, run));
      }
    });
  }
}
