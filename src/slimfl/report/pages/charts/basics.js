// Small helpers: elements, text widths, ticks, and how numbers are written.

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const SIZE = 12.5; // pixels of the text
const MARKERS = 40; // lines with up to this many points get dots
const RECTANGLES = 6000; // heat maps with up to this many cells are made of rectangles

function svg(tag, attributes = {}, text = null) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

const ruler = document.createElement("canvas").getContext("2d");
function textWidth(text) {
  ruler.font = `${SIZE}px ${FONT}`;
  return ruler.measureText(text).width;
}

// Steps of 1, 2 or 5 times a power of ten; never below 1 where only whole numbers make sense.
function ticks(low, high, most, whole) {
  const rough = (high - low) / Math.max(1, most);
  if (!(rough > 0) || !Number.isFinite(rough)) return { values: [low], step: 1 };
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9));
  if (whole) step = Math.max(1, Math.round(step));
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) values.push(i * step + 0); // no -0
  return { values, step };
}

function tickText(value, step) {
  if (Math.abs(value) >= 1e9 || (value !== 0 && Math.abs(step) < 1e-4)) return value.toExponential(1);
  const decimals = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step) - 1e-9)));
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function valueText(value, axis) {
  if (value === null || value === undefined) return "–";
  const number = axis.decimals !== undefined
    ? value.toFixed(axis.decimals)
    : axis.whole ? value.toLocaleString("en-US")
      : Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3)
        ? value.toExponential(3) : Number(value.toPrecision(4)).toLocaleString("en-US", { maximumFractionDigits: 8 });
  return axis.unit ? `${number} ${axis.unit}` : number;
}

const xValues = (plot, series, choice) => plot.xs[series.x[choice]];

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}
