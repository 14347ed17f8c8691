// Many lines on a canvas, without blocking the page.
const MARGIN = { left: 52, right: 14, top: 10, bottom: 38 };
const SLICE_MS = 7; // of drawing at a time, so that the page stays responsive

export const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// A canvas for the picture, one above it for the pointer, and a box for text.
export class Pane {
  constructor(holder, label) {
    this.holder = holder;
    this.canvas = holder.appendChild(document.createElement("canvas"));
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    this.over = holder.appendChild(document.createElement("canvas"));
    this.tip = holder.appendChild(document.createElement("div"));
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.over.addEventListener("pointermove", (event) => this.pointed(event.offsetX, event.offsetY));
    this.over.addEventListener("pointerleave", () => this.left());
    new ResizeObserver(() => this.redraw()).observe(holder);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  get box() {
    const { clientWidth: width, clientHeight: height } = this.holder;
    return { x: MARGIN.left, y: MARGIN.top, width, height,
      w: Math.max(10, width - MARGIN.left - MARGIN.right), h: Math.max(10, height - MARGIN.top - MARGIN.bottom) };
  }

  // A context in CSS pixels on a cleared canvas of the screen's resolution.
  clear(canvas, options) {
    const ratio = devicePixelRatio || 1, { width, height } = this.box;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d", options);
    context.scale(ratio, ratio);
    context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    return context;
  }

  say(text, x, y) {
    this.tip.textContent = text;
    this.tip.hidden = false;
    const { width, height } = this.box;
    this.tip.style.left = `${x < width / 2 ? x + 12 : Math.max(0, x - 12 - this.tip.offsetWidth)}px`;
    this.tip.style.top = `${Math.max(0, Math.min(y - 10, height - this.tip.offsetHeight))}px`;
  }

  left() { this.tip.hidden = true; this.clear(this.over); }
  pointed() {}
  redraw() {}
}

// Whole steps of 1, 2 or 5 times a power of ten.
export function ticks(low, high, count, whole = false) {
  const rough = (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

export function frame(context, box, { xs, ys, at, xText, yText, title }) {
  const { x, y, w, h } = box;
  context.lineWidth = 1;
  context.strokeStyle = themed("--grid");
  context.fillStyle = themed("--soft");
  context.beginPath();
  for (const v of ys) { const py = Math.round(at.y(v)) + 0.5; context.moveTo(x, py); context.lineTo(x + w, py); }
  for (const v of xs) { const px = Math.round(at.x(v)) + 0.5; context.moveTo(px, y + h); context.lineTo(px, y + h + 4); }
  context.stroke();
  context.textAlign = "right"; context.textBaseline = "middle";
  for (const v of ys) context.fillText(yText(v), x - 6, at.y(v));
  context.textAlign = "center"; context.textBaseline = "top";
  for (const v of xs) {
    const half = context.measureText(xText(v)).width / 2;
    context.fillText(xText(v), Math.min(at.x(v), x + w + MARGIN.right - half), y + h + 6);
  }
  context.textAlign = "right";
  context.fillText(title, x + w, y + h + 20);
}

// The largest unit of which the range has at least two; units: [[size, name], ...], ascending.
const unitFor = (units, right) => units.findLast(([size]) => right >= 2 * size) ?? units[0];

export const say = (value, units) => {
  const [size, name] = unitFor(units, 2 * value);
  return `${Number((value / size).toPrecision(3))} ${name}`;
};

export class LineChart extends Pane {
  constructor(holder, label) {
    super(holder, label);
    this.lines = [];
    this.back = document.createElement("canvas");
    this.job = 0;
    this.busy = this.again = false;
  }

  // lines: {name, x, y, n, colour, dash}; y is a share of 1
  show(lines, axis) {
    this.lines = lines;
    this.axis = axis;
    this.redraw();
  }

  // The ranges are of all rounds, so that a replay does not move the axes.
  ranges() {
    let right = -Infinity, low = Infinity, high = -Infinity;
    for (const { x, y } of this.lines) {
      if (x.length) right = Math.max(right, x[x.length - 1]);
      for (let i = 0; i < y.length; i++) {
        if (y[i] < low) low = y[i];
        if (y[i] > high) high = y[i];
      }
    }
    if (!(high >= low)) [low, high] = [0, 1];
    const pad = Math.max(0.01, (high - low) * 0.05);
    const left = this.axis.whole ? 1 : 0;
    return { left, right: right > left ? right : left + 1, low: Math.max(0, low - pad), high: Math.min(1, high + pad) };
  }

  redraw() {
    if (!this.axis) return;
    if (this.busy) { this.again = true; return; } // otherwise frequent updates would never let a drawing finish
    this.busy = true;
    const job = ++this.job, box = this.box, { left, right, low, high } = this.ranges();
    this.at = {
      x: (v) => box.x + ((v - left) / (right - left)) * box.w,
      y: (v) => box.y + (1 - (v - low) / (high - low)) * box.h,
    };
    // in memory: what is drawn is drawn at once, and its time can be measured
    const context = this.clear(this.back, { willReadFrequently: true }), { whole, units, title } = this.axis;
    const [size, unit] = unitFor(units, right);
    const xs = ticks(left / size, right / size, box.w / 70, whole).map((v) => v * size);
    if (whole && xs[0] > 1 && (xs[1] ?? right) > xs[0] * 1.2) xs.unshift(1);
    frame(context, box, { xs, ys: ticks(low, high, box.h / 45), at: this.at,
      xText: (v) => `${Number((v / size).toPrecision(6))}`, yText: (v) => `${Number((100 * v).toPrecision(3))} %`,
      title: unit ? `${title} in ${unit}` : title });
    context.beginPath();
    context.rect(box.x - 1, box.y - 2, box.w + 3, box.h + 4);
    context.clip();
    context.lineJoin = "bevel";
    const lines = this.lines, thin = lines.length > 12;
    let next = 0, drawn = 0;
    const slice = () => {
      const end = performance.now() + SLICE_MS;
      while (next < lines.length && performance.now() < end) {
        drawn += this.stroke(context, lines[next++], box, thin ? 1 : 1.7);
        context.getImageData(0, 0, 1, 1); // now, not when the slice is over
      }
      if (next < lines.length) { requestAnimationFrame(slice); return; }
      const front = this.clear(this.canvas);
      front.setTransform(1, 0, 0, 1, 0, 0);
      front.drawImage(this.back, 0, 0);
      Object.assign(this.canvas.dataset, { lines: lines.length, points: drawn, job });
      this.busy = false;
      if (this.again) { this.again = false; requestAnimationFrame(() => this.redraw()); }
    };
    slice();
  }

  // At most a few points per pixel column: first, lowest, highest and last suffice.
  stroke(context, { x, y, n, colour, dash }, box, width) {
    const { at } = this;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    let column = NaN, low = 0, high = 0, last = 0, points = 0, open = false;
    const flush = () => {
      if (!open) return;
      context.lineTo(column, low); context.lineTo(column, high); context.lineTo(column, last);
      open = false;
    };
    const dense = n > 2 * box.w;
    for (let i = 0; i < n; i++) {
      if (y[i] !== y[i]) continue;
      points++;
      const px = at.x(x[i]), py = at.y(y[i]);
      if (!dense) { context.lineTo(px, py); continue; }
      const here = Math.round(px);
      if (here !== column) {
        flush();
        column = here; low = high = py;
        context.lineTo(here, py);
      } else { low = Math.min(low, py); high = Math.max(high, py); open = true; }
      last = py;
    }
    flush();
    context.stroke();
    if (points === 1) { // a line of one point is invisible
      const i = y.findIndex((v) => v === v);
      context.fillStyle = colour;
      context.fillRect(at.x(x[i]) - 2, at.y(y[i]) - 2, 4, 4);
    }
    context.setLineDash([]);
    return points;
  }

  pointed(px, py) {
    if (!this.at) return;
    let best = null, nearest = 40 ** 2;
    for (const line of this.lines) {
      let low = 0, high = line.n - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.at.x(line.x[middle]) < px) low = middle + 1; else high = middle;
      }
      for (let i = Math.max(0, low - 12); i <= Math.min(line.n - 1, low + 12); i++) {
        if (line.y[i] !== line.y[i]) continue;
        const away = (this.at.x(line.x[i]) - px) ** 2 + (this.at.y(line.y[i]) - py) ** 2;
        if (away < nearest) { nearest = away; best = { line, i }; }
      }
    }
    this.left();
    if (!best) return;
    const { line, i } = best, context = this.over.getContext("2d"), box = this.box;
    context.beginPath(); context.rect(box.x, box.y, box.w, box.h); context.save(); context.clip();
    this.stroke(context, { ...line, colour: themed("--card"), dash: [] }, box, 6); // a halo, to set it apart from the others
    this.stroke(context, { ...line, dash: [] }, box, 2.2);
    context.restore();
    const x = this.at.x(line.x[i]), y = this.at.y(line.y[i]);
    context.fillStyle = line.colour;
    context.beginPath(); context.arc(x, y, 4.5, 0, 7); context.fill();
    const where = this.axis.whole ? "" : ` · ${say(line.x[i], this.axis.units)}`;
    this.say(`${line.name}\nround ${i + 1}${where} · ${(100 * line.y[i]).toFixed(2)} %`, x, y);
  }
}
