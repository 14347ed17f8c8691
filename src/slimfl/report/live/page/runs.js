// The page's data on the runs, filled by events in pieces of any size.
export const AXES = ["round", "compute_s", "airtime_s", "energy_j", "bits"];

class Run {
  constructor(about) {
    this.about = about;
    this.now = { state: "waiting", widths: [], rounds: 0, accuracy: {}, delivered: [] };
    this.x = Object.fromEntries(AXES.map((axis) => [axis, []]));
    this.accuracy = new Map(); // width -> one number per round, NaN where it was not evaluated
  }

  get length() { return this.x.round.length; }

  cut(length) {
    for (const values of [...Object.values(this.x), ...this.accuracy.values()]) values.length = length;
  }

  add(rows, widths) {
    for (const width of widths) {
      if (!this.accuracy.has(width)) this.accuracy.set(width, new Array(this.length).fill(NaN));
    }
    for (const [accuracy, ...sums] of rows) {
      widths.forEach((width, i) => this.accuracy.get(width).push(accuracy ? accuracy[i] : NaN));
      this.x.round.push(this.length + 1);
      sums.forEach((sum, i) => this.x[AXES[i + 1]].push(sum));
    }
  }
}

export class Runs {
  constructor() {
    this.byKey = new Map();
    this.leftOut = 0;
  }

  all() { return [...this.byKey.values()]; }

  // The list of runs: new ones come, vanished ones go, the others keep their rounds.
  list({ runs, left_out }) {
    const before = this.byKey;
    this.byKey = new Map(runs.map((about) => {
      const run = before.get(about.key) ?? new Run(about);
      run.about = about;
      return [about.key, run];
    }));
    this.leftOut = left_out;
  }

  // Rounds of one run from a certain one on; what the page has from there on is replaced.
  // False if rounds in between are missing: then everything has to be requested again.
  rounds({ run: key, from, now, rows }) {
    const run = this.byKey.get(key);
    if (!run || from > run.length) return false;
    if (from === 0) run.accuracy.clear();
    run.cut(from);
    run.add(rows, now.widths);
    run.now = now;
    return true;
  }
}
