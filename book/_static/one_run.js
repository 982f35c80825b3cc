/* What paperlib.bounds computes about a one-run audit, in JavaScript: tails.py, anytime.py, guesses.py and adaptive.py of
   paperlib/bounds/one_run/, and what makes its number no answer.

   Chances are given by their log-odds, so that neither q nor 1 - q is ever rounded to 1. */
"use strict";

const OneRun = (() => {
  const MARGIN = 1e-11; // bounds are lowered by this much, as in tails.py
  const LARGEST = 60; // nats; the search of anytime.py ends here
  const SHARP = 3; // nats above the tested odds of the point in its prior
  const TOLERANCE = 1e-9; // nats, of the search of anytime.py
  const STEP = 0.25; // nats between two budgets of failures
  /* Standard deviations, the normal quantiles of the levels in direction.py. */
  const REVERSED = -2.3263478740408408;
  const REFUSED = -3.2905267314918945;

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

  /* adaptive.py, whose words stand there: one end of scores, highest first; `end` is behind each tied block. */
  function endOfScores(values, asMember) {
    const size = values.length;
    const example = (at) => (asMember ? at : size - 1 - at);
    const end = new Array(size);
    for (let at = size - 1; at >= 0; at -= 1) {
      end[at] = at + 1 < size && values[example(at)] === values[example(at + 1)] ? end[at + 1] : at + 1;
    }
    return { asMember, example, end, size, at: 0 };
  }

  function hidden(one, stop, revealed) {
    while (one.at < one.size && revealed[one.example(one.at)]) one.at += 1;
    const found = [];
    for (let at = one.at; at < stop(); at += 1) if (!revealed[one.example(at)]) found.push(at);
    return found;
  }

  const nextSize = (one, revealed) => hidden(one, () => (one.at < one.size ? one.end[one.at] : 0), revealed).length;

  /* [example, number of proposed ones up to the end of its tied block] of whole blocks. */
  function propose(one, count, revealed) {
    const reach = () => Math.min(one.at + count, one.size);
    const found = hidden(one, () => (reach() > one.at ? one.end[reach() - 1] : one.at), revealed);
    const last = new Array(found.length);
    for (let i = found.length - 1; i >= 0; i -= 1) {
      last[i] = i + 1 < found.length && one.end[found[i]] === one.end[found[i + 1]] ? last[i + 1] : i + 1;
    }
    return found.map((at, i) => [one.example(at), last[i]]).filter((pair) => pair[1] <= count);
  }

  /* Share of right guesses among the recent ones and its variance; null before a first guess. */
  function accuracy(right) {
    const guesses = right.length - 1;
    if (guesses === 0) return null;
    const recent = Math.min(guesses, Math.max(60, Math.floor(guesses / 4)));
    const share = (right[guesses] - right[guesses - recent] + 0.5) / (recent + 1);
    return [share, (share * (1 - share)) / (recent + 1)];
  }

  function favoured(accuracies) {
    const places = accuracies.map((_, i) => i);
    const seen = accuracies.filter((one) => one !== null);
    const unseen = places.filter((i) => accuracies[i] === null);
    if (seen.length === 0) return new Set(unseen);
    const [best, spread] = seen.reduce((a, b) => (b[0] > a[0] || (b[0] === a[0] && b[1] > a[1]) ? b : a));
    if (best - Math.sqrt(spread) <= 0.5) return new Set(unseen);
    const close = (one) => one === null || one[0] >= best - 0.7 * Math.sqrt(spread + one[1]);
    return new Set(places.filter((i) => close(accuracies[i])));
  }

  /* The guesses whose order learns from the coins, of scores from the highest on. */
  function adaptivePath(values, members) {
    const ends = [endOfScores(values, true), endOfScores(values, false)];
    const records = ends.map(() => ({ credit: Math.floor(Math.log10(values.length) + 1e-9), right: [0] }));
    const revealed = new Uint8Array(values.length);
    const path = [];
    let [seen, guesses, correct] = [0, 0, 0];

    function turn(betting) {
      const bets = [];
      ends.forEach((one, i) => {
        const record = records[i];
        const offer = propose(one, Math.floor(record.credit + 1e-9), revealed);
        const right = offer.map(([example]) => (Boolean(members[example]) === one.asMember ? 1 : 0));
        for (const [example] of offer) revealed[example] = 1;
        seen += offer.length;
        record.credit -= offer.length;
        const before = record.right[record.right.length - 1];
        for (let start = 0, sum = 0; start < offer.length; ) {
          const stop = offer[start][1];
          const share = right.slice(start, stop).reduce((a, b) => a + b, 0) / (stop - start);
          for (; start < stop; start += 1) {
            sum += share;
            record.right.push(before + sum);
          }
        }
        if (betting.has(i)) offer.forEach((pair, k) => bets.push([pair[1], i, right[k]]));
      });
      bets.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      bets.forEach(([last, i, right], k) => {
        guesses += 1;
        correct += right;
        const next = bets[k + 1];
        if (!next || next[0] !== last || next[1] !== i) path.push([guesses, correct]);
      });
    }

    turn(new Set());
    while (seen < values.length) {
      const betting = favoured(records.map((record) => accuracy(record.right)));
      const rates = records.map((_, i) => (betting.has(i) || betting.size === 0 ? 1 : 1 / 10));
      const needed = ends.map((one, i) => (nextSize(one, revealed) - records[i].credit) / rates[i]);
      const steps = Math.max(1 + Math.floor(seen / 50), Math.min(...needed));
      records.forEach((record, i) => { record.credit += steps * rates[i]; });
      turn(betting);
    }
    return path;
  }

  /* The same of guesses whose order is fixed by the scores: guesses.py. */
  function fixedPath(values, members, guess) {
    const size = values.length;
    const top = [];
    const right = [0];
    for (let i = 0; i < size; i += 1) {
      right.push(right[i] + (members[i] ? 1 : 0));
      if (i + 1 === size || values[i] !== values[i + 1]) top.push(i + 1);
    }
    const bottom = [0, ...top.slice(0, -1)].reverse().map((end) => size - end);
    const counts = { members: top, nonmembers: bottom, both: [...new Set([...top, ...bottom])].sort((a, b) => a - b) }[guess];
    const path = [];
    let [i, j] = [0, 0];
    for (const count of counts) {
      while (i < top.length && top[i] <= count) i += 1;
      while (j < bottom.length && bottom[j] <= count) j += 1;
      const a = guess === "nonmembers" || i === 0 ? 0 : top[i - 1];
      const b = guess === "members" || j === 0 ? 0 : bottom[j - 1];
      if (a + b > 0 && a + b <= size) path.push([a + b, right[a] + b - (right[size] - right[size - b])]);
    }
    return path;
  }

  /* anytime.py: whether a stopping point refutes an epsilon; those that cannot refute a larger one are forgotten. What
     takes long, and depends on the failures alone, is kept in `known`. */
  function countSearch(path, level, failures, most, known = new Map()) {
    const threshold = Math.max(Math.log(1 / level), Math.log(3));
    const share = Math.min(0.5, 8 / Math.sqrt(most));
    if (!known.has(failures)) {
      const k = Float64Array.from(path, ([, correct]) => Math.max(correct - failures, 0));
      const r = Float64Array.from(path, ([guesses]) => guesses);
      known.set(failures, { k, r, evidence: k.map((right, i) => logBeta(right + 0.5, r[i] - right + 0.5) - Math.log(Math.PI)) });
    }
    const { k, r, evidence } = known.get(failures);
    let counts = Int32Array.from(path, (_, i) => i);
    const search = { best: 0 };
    search.refutes = (odds) => {
      const [right, wrong] = [logRight(odds), logWrong(odds)];
      const [sharpRight, sharpWrong] = [logRight(odds + SHARP) - right, logWrong(odds + SHARP) - wrong];
      const priorKept = Math.log((2 / Math.PI) * Math.atan(Math.exp(-odds / 2)));
      const q = Math.exp(right);
      let [likeliest, top] = [-1, -Infinity];
      const hopeful = counts.filter((i) => {
        if (k[i] <= r[i] * q) return false;
        const broad = Math.log1p(-share) + evidence[i] - priorKept - k[i] * right - (r[i] - k[i]) * wrong;
        const sharp = Math.log(share) + k[i] * sharpRight + (r[i] - k[i]) * sharpWrong;
        const upper = Math.max(broad, sharp) + Math.log1p(Math.exp(-Math.abs(broad - sharp)));
        if (upper > top) [likeliest, top] = [i, upper];
        return upper >= threshold;
      });
      for (const tried of hopeful.length === 0 ? [] : [[likeliest], hopeful]) {
        let [highest, found] = [-Infinity, -1];
        for (const i of tried) {
          const exact = logMixture(k[i], r[i], odds, most);
          if (exact > highest) [highest, found] = [exact, i];
        }
        if (highest >= threshold) {
          search.best = found;
          counts = hopeful;
          return true;
        }
      }
      return false;
    };
    return search;
  }

  /* [guesses, right ones] wherever the test may stop, of one score and one membership per example. */
  function guessPath(scores, members, guess) {
    const order = scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a]);
    const [values, labels] = [order.map((i) => scores[i]), order.map((i) => members[i])];
    return guess === "adaptive" ? adaptivePath(values, labels) : fixedPath(values, labels, guess);
  }

  /* audit_one_run with its anytime search, of one score and one membership per example; what higher scores point to is a
     member. Guesses: "adaptive", "both", "members" or "nonmembers". */
  function audit(scores, members, { guess = "adaptive", delta = 0, confidence = 0.95 } = {}) {
    const mDelta = scores.length * delta * sidesOf(guess);
    return bestOf(guessPath(scores, members, guess), scores.length, mDelta, 1 - confidence);
  }

  const sidesOf = (guess) => (guess === "members" || guess === "nonmembers" ? 0.5 : 1);

  /* What audit of `total` examples gives where all of `most` guesses are right. */
  const ceiling = (most, { delta = 0, confidence = 0.95, guess = "adaptive", total = most } = {}) =>
    bestOf([[most, most]], total, total * delta * sidesOf(guess), 1 - confidence).epsilon;

  function bestOf(every, most, mDelta, error) {
    // A right guess never takes evidence away, so that a wrong one must follow where it is best to stop.
    const path = every.filter(([r, v], i) => i + 1 === every.length || every[i + 1][0] - every[i + 1][1] > r - v);
    const found = (epsilon, search) => ({ epsilon, guesses: path[search.best][0], correct: path[search.best][1] });
    const [guesses, correct] = every[every.length - 1] ?? [0, 0];
    let bound = { epsilon: 0, guesses, correct };
    if (path.length === 0) return bound;
    if (mDelta === 0) {
      const search = countSearch(path, error, 0, most);
      let [low, high] = [0, 1];
      if (!search.refutes(low)) return bound;
      for (; high < LARGEST && search.refutes(high); high *= 2) low = high;
      return found(lastRefuted(search.refutes, low, high, TOLERANCE), search);
    }
    const known = new Map();
    for (let start = 0; start < LARGEST; start += STEP) {
      const mean = mDelta / (1 + Math.exp(start));
      const failures = mean <= 0.7 * error ? 0 : Math.ceil(mean / (0.7 * error)) - 1;
      const search = countSearch(path, error - mean / (failures + 1), failures, most, known);
      if (!search.refutes(start)) return bound;
      const end = start + STEP;
      bound = search.refutes(end) ? found(end, search) : found(lastRefuted(search.refutes, start, end, TOLERANCE), search);
      if (bound.epsilon < end) return bound;
    }
    return bound;
  }

  /* The smallest count that Binomial(n, q) does not exceed with probability one half. */
  function median(n, odds) {
    let k = Math.min(n, Math.round(n * Math.exp(logRight(odds))));
    const half = 0.5 + 1e-12; // exact halves are rounded
    while (k > 0 && tail(k, n, odds) <= half) k -= 1;
    while (k < n && tail(k + 1, n, odds) > half) k += 1;
    return k;
  }

  /* ---------------------------------------------------------------- doubts: direction.py, and scores.py of the audits

     Each is { answer, text }, or null: `answer` is false where no number is an answer, and true beside a number. */

  const CHECK = "check whether the values are losses or scores (`--kind losses` of `paperlib audit`, or higher_means_member in Python) "
    + "and who is a member, by the membership column or by the files";
  const IS_REVERSED = ", so the direction of the score or the membership is probably reversed and a leak may be missed: ";
  const MAY_BE_REVERSED = ", which chance brings in at most one of 100 sound audits; else the direction of the score or the membership is "
    + "reversed and a leak may be missed: ";

  /* What was observed of a direction: a refusal, or a doubt beside a number. */
  const reversal = (observed, isRefused) => ({
    answer: !isRefused,
    text: observed + (isRefused ? IS_REVERSED : MAY_BE_REVERSED) + CHECK,
  });
  const ANEW = "compute them again with all their digits, each from its own record; if they stay equal, take another score";

  /* A number as Python's format g writes it, with so many digits. */
  function general(value, digits = 6) {
    const rounded = Number(value.toPrecision(digits));
    const [shown, power] = rounded.toExponential().split("e");
    if (rounded === 0 || (Number(power) >= -4 && Number(power) < digits)) return String(rounded);
    return `${shown}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }

  const down = (value) => (Math.floor(value * 1000) / 1000).toFixed(3);

  function counted(values) {
    const times = new Map();
    for (const value of values) times.set(value, (times.get(value) ?? 0) + 1);
    return times;
  }

  /* P[a standard normal is at most -z], of z above 2, by its continued fraction. */
  function normalTail(z) {
    let below = z;
    for (let i = 300; i > 0; i -= 1) below = z + i / below;
    return Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI) / below;
  }

  /* reversed_warning of scores that point up; `answer` is null where a test with random numbers decides. */
  function reversed(values, members, times = counted(values)) {
    const [member, nonmember] = [true, false].map((side) => Float64Array.from(values.filter((_, i) => members[i] === side)).sort());
    let [won, below, upTo] = [0, 0, 0];
    for (const value of member) {
      while (below < nonmember.length && nonmember[below] < value) below += 1;
      while (upTo < nonmember.length && nonmember[upTo] <= value) upTo += 1;
      won += below + upTo;
    }
    const [pairs, total] = [member.length * nonmember.length, values.length];
    const auc = won / (2 * pairs);
    let [tied, largest] = [0, 0];
    for (const count of times.values()) [tied, largest] = [tied + count ** 3 - count, Math.max(largest, count)];
    const variance = (pairs / 12) * (total + 1 - tied / (total * (total - 1)));
    const z = ((auc - 0.5) * pairs + 0.5) / Math.sqrt(variance);
    if (!(auc < 0.5 && variance > 0 && z <= REVERSED)) return null;
    if (Math.min(member.length, nonmember.length) < 50 || largest > 0.05 * total) {
      return { answer: null, text: `AUC ${down(auc)} is below one half, and only permutations can tell whether that is chance` };
    }
    return reversal(`AUC ${down(auc)} is significantly below one half (p = ${general(normalTail(-z), 2)})`, z <= REFUSED);
  }

  /* _mirrored of scores that point up, where these show nothing: whether they show a leak in the other direction. */
  function mirrored(values, members, options) {
    const turned = values.map((value) => -value);
    const shows = (confidence) => audit(turned, members, { ...options, confidence }).epsilon > 0;
    return shows(0.99) ? reversal("the scores show a leak in the other direction", shows(0.9995)) : null;
  }

  /* _saturated of scores as they were given: all are one, but for wrong answers, or most of three or more values. */
  function saturated(values, isScores, times = counted(values)) {
    let [value, most] = [0, 0];
    for (const [one, count] of times) if (count > most) [value, most] = [one, count];
    if (times.size === 1 && !(isScores && (value === 0 || value === 1))) {
      return { answer: false, text: `all scores are ${general(value)}, so they say nothing of membership; ${ANEW}` };
    }
    if (times.size <= 2 || 2 * most <= values.length) return null;
    const percent = (most / values.length) * 100;
    const whole = percent % 2 === 0.5 ? percent - 0.5 : Math.round(percent); // halves to even, as in Python
    return {
      answer: true,
      text: `${whole}% of the scores are ${general(value)}: if they were rounded, or computed in 16 bits, a leak among them is not `
        + "seen; compute them in 64 bits",
    };
  }

  return { epsilon, searched, median, logMixture, tail, guessPath, audit, ceiling, general, down, counted, reversed, mirrored, saturated };
})();
