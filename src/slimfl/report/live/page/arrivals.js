// One run in detail: deliveries per device as a heat map, and gains against thresholds.
import { Pane, frame, themed, ticks } from "./chart.js";

const pixels = (colour) => {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return (255 << 24) | (b << 16) | (g << 8) | r; // little-endian RGBA
};

class RoundPane extends Pane {
  // details: {from, devices, codes[round][device], gains[round][device], words, colours, thresholds}
  show(details, until) {
    this.details = details;
    this.until = until;
    this.redraw();
  }

  // Columns are rounds; all of them keep their place in a replay.
  columns(box) {
    const { from, codes } = this.details, count = Math.max(1, codes.length);
    const visible = Math.max(0, Math.min(codes.length, this.until - from));
    return { count, visible, wide: box.w / count, round: (px) => Math.floor((px - box.x) / (box.w / count)) };
  }

  axis(box) {
    const { from } = this.details, { count, wide } = this.columns(box);
    const xs = ticks(from + 1, from + count, box.w / 70, true);
    return { xs, x: (round) => box.x + (round - from - 0.5) * wide, xText: String, title: "round" };
  }
}

export class HeatMap extends RoundPane {
  redraw() {
    if (!this.details) return;
    const box = this.box, context = this.clear(this.canvas);
    const { codes, devices, colours } = this.details, { count, visible, wide } = this.columns(box);
    const tall = box.h / devices.length, palette = colours.map(pixels);
    const image = new ImageData(count, devices.length), words = new Uint32Array(image.data.buffer);
    for (let c = 0; c < visible; c++) {
      for (let d = 0; d < devices.length; d++) words[d * count + c] = palette[codes[c][d]];
    }
    const small = document.createElement("canvas");
    small.width = count; small.height = devices.length;
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, box.x, box.y, box.w, box.h);
    if (wide > 6 && tall > 6) { // cells large enough for gaps between them
      context.strokeStyle = themed("--card");
      context.beginPath();
      for (let c = 0; c <= count; c++) { context.moveTo(box.x + c * wide, box.y); context.lineTo(box.x + c * wide, box.y + box.h); }
      for (let d = 0; d <= devices.length; d++) { context.moveTo(box.x, box.y + d * tall); context.lineTo(box.x + box.w, box.y + d * tall); }
      context.stroke();
    }
    const every = Math.max(1, Math.ceil(14 / tall));
    const axis = this.axis(box), rows = devices.map((_, i) => i).filter((i) => i % every === 0);
    context.fillStyle = themed("--soft");
    context.textBaseline = "middle"; context.textAlign = "right";
    for (const row of rows) context.fillText(`${devices[row]}`, box.x - 6, box.y + (row + 0.5) * tall);
    context.textBaseline = "top"; context.textAlign = "center";
    for (const round of axis.xs) context.fillText(`${round}`, axis.x(round), box.y + box.h + 6);
    context.textAlign = "right";
    context.fillText(axis.title, box.x + box.w, box.y + box.h + 20);
    context.textAlign = "center";
    context.save();
    context.translate(10, box.y + box.h / 2); context.rotate(-Math.PI / 2);
    context.fillText("device", 0, 0);
    context.restore();
    Object.assign(this.canvas.dataset, { rounds: visible, devices: devices.length });
  }

  pointed(px, py) {
    if (!this.details) return;
    const box = this.box, { codes, devices, words, from } = this.details, { visible, round } = this.columns(box);
    const c = round(px), d = Math.floor(((py - box.y) / box.h) * devices.length);
    if (c < 0 || c >= visible || d < 0 || d >= devices.length) { this.left(); return; }
    const gain = this.details.gains[c]?.[d];
    this.say(`round ${from + c + 1}, device ${devices[d]}: ${words[codes[c][d]]}`
      + (gain == null ? "" : `\ngain ${gain}`), px, py);
  }
}

export class Gains extends RoundPane {
  redraw() {
    if (!this.details) return;
    const box = this.box, context = this.clear(this.canvas);
    const { gains, codes, colours, thresholds, words } = this.details, { visible, wide } = this.columns(box);
    let low = Infinity, high = -Infinity;
    for (const row of gains) for (const gain of row) if (gain > 0) { low = Math.min(low, gain); high = Math.max(high, gain); }
    for (const { gain } of thresholds) { low = Math.min(low, gain / 2); high = Math.max(high, gain * 2); }
    if (!(high > low)) [low, high] = [0.01, 10];
    low = Math.max(low, high / 1e4); // tiny gains would squeeze the rest
    const [bottom, top] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const y = (gain) => box.y + (1 - (Math.max(Math.log10(gain), bottom) - bottom) / (top - bottom)) * box.h;
    const axis = this.axis(box), ys = [];
    for (let power = bottom; power <= top; power++) ys.push(10 ** power);
    frame(context, box, { ...axis, ys, at: { x: axis.x, y }, yText: (v) => `${Number(v.toPrecision(2))}` });
    const ratio = devicePixelRatio || 1, w = Math.round(box.w * ratio), h = Math.round(box.h * ratio);
    const image = new ImageData(w, h), dots = new Uint32Array(image.data.buffer), palette = colours.map(pixels);
    const dot = Math.max(1, Math.round(ratio * (visible * (gains[0]?.length ?? 1) > 5000 ? 1.5 : 3)));
    let points = 0;
    for (let c = 0; c < visible; c++) {
      const left = Math.round((c + 0.5) * wide * ratio - dot / 2);
      gains[c]?.forEach((gain, d) => {
        if (gain == null) return;
        points++;
        const upper = Math.min(h - dot, Math.round((y(Math.max(gain, 1e-300)) - box.y) * ratio - dot / 2));
        for (let i = Math.max(0, upper); i < upper + dot; i++) {
          for (let j = Math.max(0, left); j < Math.min(w, left + dot); j++) dots[i * w + j] = palette[codes[c][d]];
        }
      });
    }
    const layer = document.createElement("canvas");
    layer.width = w; layer.height = h;
    layer.getContext("2d").putImageData(image, 0, 0);
    context.drawImage(layer, box.x, box.y, box.w, box.h);
    context.strokeStyle = context.fillStyle = themed("--ink");
    context.lineWidth = 1.5;
    context.textAlign = "left"; context.textBaseline = "bottom";
    thresholds.forEach(({ gain, segments }, index) => {
      const at = Math.round(y(gain)) + 0.5;
      context.setLineDash([6, 4]);
      context.beginPath(); context.moveTo(box.x, at); context.lineTo(box.x + box.w, at); context.stroke();
      context.setLineDash([]);
      const text = `${words[segments]}: ${Number(gain.toPrecision(3))}`;
      const long = context.measureText(text).width + 6;
      const start = index % 2 ? box.x + box.w - long - 3 : box.x + 3; // neighbours at two sides
      const foot = index ? at - 2 : at + 17; // the lowest below its line
      context.globalAlpha = 0.85;
      context.fillStyle = themed("--card");
      context.fillRect(start, foot - 15, long, 15);
      context.globalAlpha = 1;
      context.fillStyle = themed("--ink");
      context.fillText(text, start + 3, foot);
    });
    Object.assign(this.canvas.dataset, { points, thresholds: thresholds.length });
  }
}
