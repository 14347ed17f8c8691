// The table of runs: sorted by any column, each run shown or hidden, one of them selected.
const { html, button } = slimflCharts;
const words = new Intl.Collator("en", { numeric: true }); // run-2 before run-10
const name = ({ about }) => (about.name === undefined ? "unreadable" : `${about.name}, seed ${about.seed}`);

export class RunTable {
  // view: {hidden: Set, selected, sort: [key, direction], filter}; changed() after the user did
  constructor(table, view, changed) {
    Object.assign(this, { head: table.tHead, body: table.tBodies[0], view, changed, rows: new Map(), shape: "" });
  }

  // The server gives the columns after name and state, and a cell [value, text] for each of them.
  update(runs, columns, index) {
    const shape = columns.join();
    if (shape !== this.shape) { // other widths: rebuild it
      this.shape = shape;
      this.rows.clear();
      this.body.replaceChildren();
      this.keys = ["name", "state", ...columns.map(([key]) => key)];
      this.head.replaceChildren(this.heads(["run", "state", ...columns.map(([, heading]) => heading)]));
    }
    const [key, direction] = this.view.sort, column = Math.max(0, this.keys.indexOf(key));
    [...this.head.rows[0].cells].forEach((head, i) => {
      if (i === column + 1) head.ariaSort = direction > 0 ? "ascending" : "descending"; else head.removeAttribute("aria-sort");
    });
    const value = (run) => [name(run), run.state][column] ?? run.cells[column - 2]?.[0], wish = this.view.filter.toLowerCase();
    const sorted = runs.filter((run) => `${name(run)} ${run.about.path} ${run.state}`.toLowerCase().includes(wish))
      .map((run) => [value(run), run])
      .sort(([a, left], [b, right]) => {
        if (a == null || b == null) return (a == null) - (b == null); // unknown values last
        const order = typeof a === "string" ? words.compare(a, b) : a - b;
        return order * direction || words.compare(left.about.path, right.about.path);
      });
    const wanted = new Set(sorted.map(([, run]) => run.about.key));
    for (const [key, row] of this.rows) if (!wanted.has(key)) { row.remove(); this.rows.delete(key); }
    sorted.forEach(([, run], place) => {
      const row = this.rows.get(run.about.key) ?? this.row(run.about.key);
      this.fill(row, run, index);
      if (this.body.rows[place] !== row) this.body.insertBefore(row, this.body.rows[place] ?? null);
    });
  }

  heads(headings) {
    const row = html("tr");
    row.append(html("th", "", "show"), ...headings.map((heading, i) => {
      const head = html("th", i < 2 ? "text" : ""), key = this.keys[i];
      head.dataset.id = key;
      head.scope = "col";
      head.append(button(heading, "", () => {
        const [now, direction] = this.view.sort;
        // words from A, numbers from the largest
        this.view.sort = [key, now === key ? -direction : i < 2 ? 1 : -1];
        this.changed();
      }));
      return head;
    }), html("th", "", "report"));
    return row;
  }

  row(key) {
    const row = this.body.appendChild(html("tr")), box = html("input"), link = html("a", "", "report");
    Object.assign(box, { type: "checkbox" });
    Object.assign(link, { href: `report?run=${key}`, target: "_blank", rel: "noopener" });
    row.dataset.key = key;
    row.tabIndex = 0;
    row.insertCell().append(box);
    for (const id of this.keys) row.insertCell().dataset.id = id;
    row.cells[1].append(html("i"), html("span"), html("small"));
    row.insertCell().append(link);
    box.addEventListener("change", () => { this.view.hidden[box.checked ? "delete" : "add"](key); this.changed(); });
    const select = (event) => { if (!event.target.closest("a, input")) { this.view.selected = key; this.changed(); } };
    row.addEventListener("click", select);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") select(event); });
    this.rows.set(key, row);
    return row;
  }

  fill(row, run, index) {
    const hidden = this.view.hidden.has(run.about.key), [first, title, state, ...rest] = row.cells, [swatch, words, path] = title.children;
    row.classList.toggle("hidden-run", hidden);
    row.classList.toggle("selected", this.view.selected === run.about.key);
    first.firstChild.checked = !hidden;
    first.firstChild.ariaLabel = `show ${run.about.path}`;
    swatch.style.background = run.about.colour?.[index] ?? "transparent";
    [words.textContent, path.textContent] = [name(run), run.about.path];
    Object.assign(title, { className: "text name", title: `${run.about.scene ?? ""}\n${run.about.path}` });
    const said = run.problem ? `${run.state}: ${run.problem}` : run.state;
    Object.assign(state, { className: `text state ${run.state}`, title: run.problem ?? "", textContent: said });
    run.cells.forEach(([, text], i) => { rest[i].textContent = text; });
  }
}
