// Special functions: the distributions of the gain need them, and JavaScript has none.

// ln Gamma(x) for x > 0, by Lanczos' approximation (g = 7, nine terms).
function logGamma(x) {
  const terms = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const shifted = x + 6.5;
  const sum = terms.slice(1).reduce((total, term, i) => total + term / (x + i), terms[0]);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(shifted) - shifted + Math.log(sum);
}

// The regularised upper incomplete gamma function Q(a, x): a series below a + 1, above it a
// continued fraction (Lentz), as in Numerical Recipes, section 6.2.
function gammaQ(a, x) {
  if (!(x > 0)) return 1;
  if (x === Infinity) return 0;
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    let term = 1 / a, sum = term;
    for (let n = 1; n < 1000 && term > sum * 1e-17; n++) { term *= x / (a + n); sum += term; }
    return 1 - front * sum;
  }
  const tiny = 1e-300;
  let b = x + 1 - a, c = 1 / tiny, d = 1 / b, fraction = d;
  for (let n = 1; n < 1000; n++) {
    const step = n * (a - n);
    b += 2;
    d = 1 / (step * d + b || tiny);
    c = b + step / c || tiny;
    fraction *= c * d;
    if (Math.abs(c * d - 1) < 1e-16) break;
  }
  return front * fraction;
}

// Marcum's Q of order 1 as Q_1(sqrt(2 k), sqrt(2 y)): a sum of Q(j + 1, y) weighted by the Poisson
// probability of j, all terms positive. Q(j + 1, y) is itself a sum of Poisson probabilities.
function marcumQ(k, y) {
  if (!(y > 0)) return 1;
  if (y === Infinity) return 0;
  const logK = Math.log(k), logY = Math.log(y);
  const centre = Math.max(k, Math.sqrt(k * y)), last = Math.ceil(centre + 12 * Math.sqrt(centre) + 60);
  let logFactorial = 0, tail = 0, sum = 0;
  for (let j = 0; j <= last; j++) {
    if (j > 0) logFactorial += Math.log(j);
    tail += Math.exp(j * logY - y - logFactorial);
    sum += Math.exp(j * logK - k - logFactorial) * Math.min(tail, 1);
  }
  return Math.min(sum, 1);
}
