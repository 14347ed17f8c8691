// One radio link: the formulas of slimfl.radio and slimfl.radio.bound, for segments of one rate.

// The limits of the rule are those of slimfl.radio.bound; fading but the paper's is a table.
const { limits: { MOST_ROUNDS, NEGLIGIBLE, TIE }, fadings, grid } = JSON.parse(document.getElementById("slimfl-rule").textContent);

const fromDb = (decibel) => 10 ** (decibel / 10);
const toDb = (ratio) => 10 * Math.log10(ratio);
const target = (rate) => Math.expm1(rate * Math.LN2); // u' = 2^rate - 1
const total = (values) => values.reduce((sum, value) => sum + value, 0);

// Pr(g >= t) for the settings' fading; the mean of g is 1. Tables hold ln(-ln Pr) over ln t, which
// is a straight line for Rayleigh fading and nearly one for all others.
function survival({ fading }) {
  const { table } = fadings[fading];
  if (fading === "none") return (t) => (t <= 1 ? 1 : 0);
  if (!table) return (t) => Math.exp(-t);
  return (t) => {
    const place = ((Math.log(t) - grid[0]) / (grid[1] - grid[0])) * (table.length - 1);
    if (place >= table.length - 1) return 0;
    const i = Math.max(0, Math.floor(place)); // small gains follow the first straight piece
    if (t === 0) return 1;
    return Math.exp(-Math.exp(table[i] + (place - i) * (table[i + 1] - table[i])));
  };
}

// c / P: noise times path loss over transmit power.
function noiseToPower(settings) {
  return fromDb(settings.noise_dbm - settings.power_dbm) * settings.distance_m ** settings.path_loss_exponent;
}

// The closed-form optimum: thresholds proportional to sqrt(k_i), k_i = u' (1 + u')^(i - 1).
function optimalSplit(rate, segments) {
  const needed = target(rate), shares = [];
  let after = 0;
  for (let i = segments - 1; i >= 0; i--) {
    const margin = needed / Math.sqrt(needed * (1 + needed) ** i);
    shares.unshift(margin + needed * after);
    after += shares[0];
  }
  return shares.map((share) => share / after);
}

// Segment 1 has the given share; the others divide the rest as in the closed form.
function splitAlong(share, rate, segments) {
  if (segments === 1) return [1];
  const rest = optimalSplit(rate, segments).slice(1), whole = total(rest);
  return [share, ...rest.map((other) => ((1 - share) * other) / whole)];
}

// Equation (5): the gain that each segment needs, given those before it; infinite if none suffices.
function thresholds(split, rate, ratio) {
  const needed = target(rate);
  let highest = 0;
  return split.map((share, i) => {
    const margin = share - needed * total(split.slice(i + 1));
    highest = Math.max(highest, margin > 0 ? (ratio * needed) / margin : Infinity);
    return highest;
  });
}

const inverseSum = (probabilities) => total(probabilities.map((p) => 1 / p));

// What a split delivers at a rate and c / P.
function superposed(split, rate, ratio, reaches) {
  const needed = thresholds(split, rate, ratio), probabilities = needed.map(reaches);
  return { split, thresholds: needed, probabilities, D: inverseSum(probabilities) };
}

// The first 1, 2, ... segments in one message each: Vanilla FL at every width.
function oneMessage(rate, segments, ratio, reaches) {
  return Array.from({ length: segments }, (_, i) => {
    const threshold = ratio * target(rate * (i + 1)), p = reaches(threshold);
    return { width: widthName(i + 1, segments), threshold, p, D: (i + 1) / p };
  });
}

function widthName(part, segments) {
  const width = Math.round((1000 * part) / segments) / 1000;
  return `${Number.isInteger(width) ? width.toFixed(1) : width}x`;
}

// Which D is smaller: "segments", "one-message" or "tie".
function smallerTerm(segments, oneMessage) {
  const smaller = Math.min(segments, oneMessage);
  if (Number.isFinite(smaller) && Math.abs(segments - oneMessage) < TIE * smaller) return "tie";
  return segments <= oneMessage ? "segments" : "one-message";
}

// Section V's favourable conditions: "nothing", "poor", "good" or one of smallerTerm.
function condition(slim, whole, devices) {
  const segments = whole.length, full = whole[segments - 1];
  if (devices * MOST_ROUNDS * whole[0].p < 1) return "nothing";
  if (devices * Math.max(slim.probabilities[segments - 1], full.p) < 1) return "poor";
  if (full.D <= segments * (1 + NEGLIGIBLE)) return "good";
  return smallerTerm(slim.D, full.D);
}

// The widest Vanilla FL that arrives once per round; the narrowest if none does.
function widestThatArrives(whole, devices) {
  return whole.reduce((best, one, i) => (devices * one.p >= 1 ? i : best), 0);
}

// A number of some significant digits, as Python's format "g" writes it.
function digits(value, count) {
  if (!Number.isFinite(value)) return "inf";
  const power = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(Number(value.toPrecision(count)))));
  if (power >= -4 && power < count) return String(Number(value.toPrecision(count)));
  const [mantissa, exponent] = Number(value.toPrecision(count)).toExponential().split("e");
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

// SlimFL with its best split: the margins of the segments over the interference, improved step by
// step from the closed form's, or from equal ones, which are one message.
function bestSplit(rate, segments, ratio, reaches) {
  const needed = target(rate);
  const tried = (margins) => {
    let after = 0;
    const shares = margins.toReversed().map((margin) => {
      const share = margin + needed * after;
      after += share;
      return share;
    }).reverse();
    return { margins, ...superposed(shares.map((share) => share / after), rate, ratio, reaches) };
  };
  const equal = Array(segments).fill(1), closed = equal.map((_, i) => (1 + needed) ** (-i / 2));
  let best = [closed, equal].map(tried).reduce((one, other) => (other.D < one.D ? other : one));
  for (let step = 0.5; step > 1e-3; step /= 2) {
    for (let better = true; better;) {
      better = false;
      for (let i = 1; i < segments; i++) for (const factor of [1 + step, 1 / (1 + step)]) {
        const next = tried(best.margins.with(i, best.margins[i] * factor));
        if (next.D < best.D) [best, better] = [next, true];
      }
    }
  }
  return best;
}

function advise(slim, whole, devices, best) {
  const segments = whole.length, full = whole[segments - 1], last = slim.probabilities[segments - 1];
  const widest = whole[widestThatArrives(whole, devices)];
  const terms = `moderately poor channel: superposition has D = ${digits(slim.D, 4)}, one message D = ${digits(full.D, 4)}`;
  const otherwise = smallerTerm(best.D, full.D), bestD = `has D = ${digits(best.D, 4)}`;
  const either = { segments: "slimfl", "one-message": `vanilla-${full.width}`, tie: "tie" };
  switch (condition(slim, whole, devices)) {
    case "nothing": return {
      method: null, kind: "poor",
      reason: `nothing arrives on this link: of ${devices} devices, the server decodes less than one update of the narrowest width in ${MOST_ROUNDS.toLocaleString("en")} rounds; lower the noise, the distance or the rate, or raise the power`,
    };
    case "poor": return {
      method: `vanilla-${widest.width}`, kind: "poor",
      reason: `extremely poor channel: the last segment arrives ${digits(devices * last, 2)} times per round from ${devices} devices, so the bound's term 1/p for it is void or dominates; vanilla-${widest.width} arrives ${digits(devices * widest.p, 2)} times`,
    };
    case "good": return {
      method: `vanilla-${full.width}`, kind: "good",
      reason: `extremely good channel: the whole model in one message has D = ${digits(full.D, 4)}, and ${segments} is perfect, so superposition has less than ${100 * NEGLIGIBLE}% to gain`,
    };
    case "tie": return {
      method: "tie", kind: "tie",
      reason: `${terms}, less than ${100 * TIE}% apart${otherwise === "segments" ? `; the best split ${bestD}` : ""}`,
    };
    case "one-message": return {
      method: either[otherwise], kind: otherwise === "tie" ? "tie" : "moderate",
      reason: `${terms}; ${otherwise === "segments" ? "this split wastes power, the best one" : "even the best split"} ${bestD}`,
    };
    default: return { method: "slimfl", kind: "moderate", reason: terms };
  }
}

// Everything that the page shows of a link.
function describe(settings) {
  const { rate, segments } = settings;
  const ratio = noiseToPower(settings), reaches = survival(settings);
  const split = settings.split === "optimal" ? optimalSplit(rate, segments) : splitAlong(settings.share, rate, segments);
  const slimfl = superposed(split, rate, ratio, reaches);
  const vanilla = oneMessage(rate, segments, ratio, reaches);
  const best = bestSplit(rate, segments, ratio, reaches);
  return { ratio, slimfl, vanilla, advice: advise(slimfl, vanilla, settings.devices, best) };
}

// Segment 1 can be decoded only with more than this share of the power.
const edge = (rate) => target(rate) / (1 + target(rate));

// The noise powers worth looking at: where probabilities fall from 1 to 0, and the present one.
function noiseRange(settings, rate) {
  const falls = settings.noise_dbm - toDb(noiseToPower(settings)) - toDb(target(rate * settings.segments));
  const middle = 5 * Math.round(falls / 5);
  return [Math.min(middle - 35, settings.noise_dbm - 5), Math.max(middle + 15, settings.noise_dbm + 5)];
}

const steps = (low, high, count) => Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));

// Which method is preferable over noise and rate, SlimFL with the best of some splits: 0 for SlimFL,
// i for the first i segments in one message, -1 where nothing arrives.
function preferenceMap(settings, columns = 61, rows = 33) {
  const { segments, devices } = settings;
  const reaches = survival(settings);
  const noises = steps(...noiseRange(settings, 1.5), columns);
  const rates = steps(Math.log(0.25), Math.log(4), rows).map(Math.exp);
  const ratios = noises.map((noise_dbm) => noiseToPower({ ...settings, noise_dbm }));
  const preferred = [], tie = [];
  for (const rate of rates) {
    const row = ratios.map((ratio) => {
      const slim = bestSplit(rate, segments, ratio, reaches), whole = oneMessage(rate, segments, ratio, reaches), full = whole[segments - 1];
      const found = condition(slim, whole, devices);
      if (found === "nothing") return { method: -1, tie: false };
      const widest = found === "poor" ? widestThatArrives(whole, devices) : segments - 1;
      const slimIsBest = found === "segments" || (found === "tie" && slim.D <= full.D);
      return { method: slimIsBest ? 0 : widest + 1, tie: found === "tie" };
    });
    preferred.push(row.map((cell) => cell.method));
    tie.push(row.map((cell) => cell.tie));
  }
  return { noises, rates, preferred, tie };
}
