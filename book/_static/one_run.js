/* What paperlib.bounds computes about a one-run audit: paperlib/bounds/one_run/tails.py and anytime.py, in JavaScript.

   Chances are given by their log-odds, so that neither q nor 1 - q is ever rounded to 1. */
"use strict";

const OneRun = (() => {
  const MARGIN = 1e-11; // bounds are lowered by this much, as in tails.py
  const LARGEST = 60; // nats; the search of anytime.py ends here
  const SHARP = 3; // nats above the tested odds of the point in its prior

  const logRight = (odds) => (odds > 0 ? -Math.log1p(Math.exp(-odds)) : odds - Math.log1p(Math.exp(odds)));
  const logWrong = (odds) => logRight(-odds);

  /* What Stirling's formula for the log of the gamma function leaves out. */
  function remainder(x) {
    let sum = 0;
    for (; x < 15; x += 1) sum += (x + 0.5) * Math.log1p(1 / x) - 1;
    const y = 1 / (x * x);
    return sum + (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x;
  }

  function logBeta(a, b) {
    const corrections = remainder(a) + remainder(b) - remainder(a + b);
    return 0.5 * Math.log((2 * Math.PI * (a + b)) / (a * b)) - a * Math.log1p(b / a) - b * Math.log1p(a / b) + corrections;
  }

  /* Lentz's continued fraction of the incomplete beta function at x, which converges below the mean. */
  function fraction(a, b, x) {
    const tiny = 1e-300;
    const away = (value) => (Math.abs(value) < tiny ? tiny : value);
    let c = 1;
    let d = 1 / away(1 - ((a + b) * x) / (a + 1));
    let result = d;
    for (let i = 1, change = 0; Math.abs(change - 1) > 1e-15 && i < 1e6; i += 1) {
      for (const term of [
        (i * (b - i) * x) / ((a + 2 * i - 1) * (a + 2 * i)),
        (-(a + i) * (a + b + i) * x) / ((a + 2 * i) * (a + 2 * i + 1)),
      ]) {
        d = 1 / away(1 + term * d);
        c = away(1 + term / c);
        change = c * d;
        result *= change;
      }
    }
    return result;
  }

  /* Logs of the incomplete beta function I_q(a, b) and of 1 - I_q(a, b). */
  function logIncompleteBeta(a, b, odds) {
    const front = a * logRight(odds) + b * logWrong(odds) - logBeta(a, b);
    const q = Math.exp(logRight(odds));
    const below = q < (a + 1) / (a + b + 2);
    const small = below
      ? front + Math.log(fraction(a, b, q) / a)
      : front + Math.log(fraction(b, a, Math.exp(logWrong(odds))) / b);
    const other = Math.log(-Math.expm1(Math.min(small, 0)));
    return below ? [small, other] : [other, small];
  }

  /* P[Binomial(n, q) >= k] and P[Binomial(n, q) = k], with their logs. */
  const logTail = (k, n, odds) => (k <= 0 ? 0 : k > n ? -Infinity : logIncompleteBeta(k, n - k + 1, odds)[0]);
  const tail = (k, n, odds) => Math.exp(logTail(k, n, odds));
  const logMass = (k, n, odds) =>
    k < 0 || k > n
      ? -Infinity
      : -logBeta(k + 1, n - k + 1) - Math.log1p(n) + k * logRight(odds) + (n - k) * logWrong(odds);

  /* The refuted end of a bisection between a refuted and an unrefuted value. */
  function lastRefuted(refutes, low, high, tolerance) {
    while (high - low > tolerance) {
      const middle = (low + high) / 2;
      if (middle <= low || middle >= high) break;
      if (refutes(middle)) low = middle;
      else high = middle;
    }
    return low;
  }

  /* epsilon_from_counts: the Clopper-Pearson bound, at delta = 0. */
  function fromCounts(correct, guesses, level) {
    if (correct === 0) return 0;
    const refutes = (odds) => {
      const [below, above] = logIncompleteBeta(correct, guesses - correct + 1, odds);
      return level < 0.5 ? below <= Math.log(level) : above >= Math.log1p(-level);
    };
    if (!refutes(0)) return 0;
    let high = 1;
    while (high < 700 && refutes(high)) high *= 2;
    const epsilon = lastRefuted(refutes, 0, high, 0);
    return Math.max(epsilon - MARGIN * Math.max(1, epsilon), 0);
  }

  /* sharp_p_value, from the tail at the count. */
  function sharpPValue(correct, guesses, odds, mDelta, base) {
    if (mDelta <= 0) return base;
    const shrink = (guesses - correct) * Math.exp(odds) / (correct + 1);
    const overshoot =
      base > 1e-250
        ? Math.log(base) - logMass(correct, guesses, odds)
        : shrink < 1
          ? -Math.log1p(-shrink)
          : Infinity;
    const lift = Math.exp(Math.min(0, Math.log(mDelta) - Math.log(correct) + overshoot + 1e-9));
    return base + (1 - base) * lift;
  }

  /* The number of probabilities just below the count whose mean is highest. */
  function bestWindow(correct, guesses, odds, base) {
    const mode = Math.floor((guesses + 1) * Math.exp(logRight(odds)));
    let high = Math.max(correct, 1);
    let low = Math.min(Math.max(correct - 1 - mode, 1), high);
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const mean = (tail(correct - middle, guesses, odds) - base) / middle;
      if (Math.exp(logMass(correct - 1 - middle, guesses, odds)) > mean) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /* published_p_value, of at least one right guess. */
  function pValue(correct, guesses, odds, mDelta) {
    const base = tail(correct, guesses, odds);
    const peak = bestWindow(correct, guesses, odds, base);
    const windows = [peak - 1, peak, peak + 1].map((i) => Math.min(Math.max(i, 1), correct));
    const mean = Math.max(0, ...windows.map((i) => (tail(correct - i, guesses, odds) - base) / i));
    return Math.max(Math.min(1, base + 2 * mDelta * mean), sharpPValue(correct, guesses, odds, mDelta, base));
  }

  /* one_run_epsilon: guess count fixed beforehand. `total` counts all examples, abstentions included. */
  function epsilon(correct, guesses, { total = guesses, delta = 0, confidence = 0.95 } = {}) {
    const level = 1 - confidence;
    const mDelta = delta * total;
    const pure = fromCounts(correct, guesses, level);
    if (mDelta <= 0 || pure <= 0) return pure;
    const refutes = (odds) => pValue(correct, guesses, odds, mDelta) <= level;
    return refutes(0) ? lastRefuted(refutes, 0, pure + 1e-9, 1e-10) : 0;
  }

  /* log_mixture: the log of the supermartingale of the search over at most `most` guesses. */
  function logMixture(correct, guesses, odds, most) {
    const [a, b] = [correct + 0.5, guesses - correct + 0.5];
    const evidence = logBeta(a, b) - Math.log(Math.PI);
    const priorKept = Math.log((2 / Math.PI) * Math.atan(Math.exp(-odds / 2)));
    const broad = evidence - priorKept - correct * logRight(odds) - (guesses - correct) * logWrong(odds)
      + logIncompleteBeta(a, b, odds)[1];
    const share = Math.min(0.5, 8 / Math.sqrt(most));
    const sharp = correct * (logRight(odds + SHARP) - logRight(odds))
      + (guesses - correct) * (logWrong(odds + SHARP) - logWrong(odds));
    const [one, other] = [Math.log1p(-share) + broad, Math.log(share) + sharp];
    return Math.max(one, other) + Math.log1p(Math.exp(-Math.abs(one - other)));
  }

  /* The bound that the search of audit_one_run gives at one guess count of `most`, at delta = 0. */
  function searched(correct, guesses, confidence = 0.95, most = guesses) {
    const threshold = Math.max(-Math.log(1 - confidence), Math.log(3));
    const refutes = (odds) => logMixture(correct, guesses, odds, most) >= threshold;
    return refutes(0) ? lastRefuted(refutes, 0, LARGEST, 1e-10) : 0;
  }

  /* The smallest count that Binomial(n, q) does not exceed with probability one half. */
  function median(n, odds) {
    let k = Math.min(n, Math.round(n * Math.exp(logRight(odds))));
    const half = 0.5 + 1e-12; // exact halves are rounded
    while (k > 0 && tail(k, n, odds) <= half) k -= 1;
    while (k < n && tail(k + 1, n, odds) > half) k += 1;
    return k;
  }

  return { epsilon, searched, median, logMixture, tail };
})();
