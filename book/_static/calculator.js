/* The forms of the page "Calculator", and what other forms take from them; one_run.js computes. */
"use strict";

const Calculator = (() => {
  const MOST = 1e7; // examples, as in plan_audit
  const ADJACENCY = "adding or removing one example";
  const NEVER_PRIVATE = "It does not show that training is private.";

  const whole = (text) => (/^\d+$/.test(text) ? Number(text) : NaN);
  const decimal = (text) => (/^(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : NaN);
  const inside = (value, low, high) => value >= low && value <= high;

  /* A number as the library's sentences write it, if six digits are enough for it. */
  const general = (value) => (Number(value.toPrecision(6)) === value ? OneRun.general(value) : String(value));

  const down = (value) => OneRun.down(value);
  const up = (value) => (Math.ceil(value * 1000) / 1000).toFixed(3);

  /* lower_bound_claim of the library. */
  function claim(epsilon, ceiling, delta, confidence, adjacency = ADJACENCY) {
    const [d, c] = [general(delta), general(confidence)];
    if (epsilon > 0)
      return `With confidence ${c}, the training procedure is not (epsilon, ${d})-differentially private under ` +
        `${adjacency} for any epsilon below ${down(epsilon)}.`;
    if (ceiling <= 0)
      return `So few examples cannot refute any epsilon under ${adjacency} (delta = ${d}, confidence ${c}), ` +
        "however good the attack: nothing is learned from this audit.";
    return `At confidence ${c} this audit refutes no epsilon, and could have refuted at most ${up(ceiling)}: it is ` +
      `consistent with perfect privacy under ${adjacency} (delta = ${d}). ${NEVER_PRIVATE}`;
  }

  /* Reads a form; `say` writes one line under a field, or takes it away. */
  function reader(form) {
    const read = {
      text: (name) => form.elements[name].value.trim(),
      say(name, message) {
        const field = form.elements[name];
        document.getElementById(field.getAttribute("aria-describedby")).textContent = message;
        field.setAttribute("aria-invalid", String(Boolean(message)));
        return !message;
      },
      value(name, parse, good, message) {
        const value = parse(read.text(name));
        return read.say(name, good(value) ? "" : message(value)) ? value : NaN;
      },
      confidence: () =>
        read.value("confidence", decimal, (c) => c > 0 && c < 1 && 1 - c < 1, (c) =>
          inside(c, 1, 100) && c !== 1 && c !== 100
            ? `Write a share below 1: ${general(c / 100)} for ${general(c)} %.`
            : "Write a number between 0 and 1, such as 0.95."),
      delta: () =>
        read.value("delta", decimal, (d) => d >= 0 && d < 1, () => "Write 0, or a number below 1 such as 0.00001."),
    };
    return read;
  }

  const number = (name, value) =>
    `<strong class="calc-number" data-name="${name}" data-value="${value}">ε ≥ ${down(value)}</strong>`;
  const problem = "<p>Correct the marked fields.</p>";

  function bound(form) {
    const read = reader(form);
    const guesses = read.value("guesses", whole, (r) => inside(r, 1, MOST), () =>
      `Write a whole number from 1 to ${MOST}, such as 100.`);
    const correct = read.value("correct", whole, (v) => inside(v, 0, guesses || MOST), () =>
      `Write a whole number from 0 to ${guesses || MOST}, the number of guesses.`);
    const confidence = read.confidence();
    const delta = read.delta();
    const needed = delta > 0 || read.text("total") !== "";
    const total = needed
      ? read.value("total", whole, (m) => inside(m, guesses || 1, MOST), () =>
          `Write a whole number from ${guesses || 1}, the number of guesses, to ${MOST}.`)
      : (read.say("total", ""), guesses);
    if ([guesses, correct, confidence, delta, total].some(Number.isNaN)) return problem;
    const options = { total, delta, confidence };
    const [epsilon, ceiling] = [OneRun.epsilon(correct, guesses, options), OneRun.epsilon(guesses, guesses, options)];
    return `<p>${number("epsilon", epsilon)} (δ = ${general(delta)}, confidence ${general(confidence)})</p>` +
      `<p class="calc-claim">${claim(epsilon, ceiling, delta, confidence)}</p>`;
  }

  function plan(form) {
    const read = reader(form);
    const n = read.value("examples", whole, (m) => inside(m, 2, MOST), () =>
      `Write a whole number from 2 to ${MOST}, such as 1000.`);
    const odds = read.value("epsilon", decimal, (e) => inside(e, 0, 100), () =>
      "Write a number from 0 to 100, such as 2.");
    const confidence = read.confidence();
    if ([n, odds, confidence].some(Number.isNaN)) return problem;
    const right = OneRun.median(n, odds);
    const ceiling = OneRun.searched(n, n, confidence);
    const row = (title, correct, name) =>
      `<tr><th scope="row">${title}: ${correct} right</th>` +
      `<td>${number(`${name}-fixed`, OneRun.epsilon(correct, n, { confidence }))}</td>` +
      `<td>${number(`${name}-searched`, OneRun.searched(correct, n, confidence))}</td></tr>`;
    return `<table><caption>What ${n} examples could show (δ = 0, confidence ${general(confidence)})</caption>` +
      '<thead><tr><th scope="col">Guesses</th><th scope="col">fixed beforehand</th>' +
      '<th scope="col">all tested at once</th></tr></thead><tbody>' +
      row("At most", n, "most") + row(`Typically, at ε = ${general(odds)}`, right, "typical") + "</tbody></table>" +
      `<p class="calc-claim"><em>All tested at once.</em> An audit of ${n} examples at delta = 0 cannot show more than epsilon = ${up(ceiling)} at ` +
      `confidence ${general(confidence)}, however good the attack (add/remove adjacency, guess="adaptive"). ` +
      "A plan, not a measurement.</p>";
  }

  function start(form, answer) {
    const result = form.querySelector(".calc-result");
    const show = () => {
      const html = answer(form);
      if (html !== form.shown) result.innerHTML = form.shown = html;
    };
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
  }

  if (typeof document !== "undefined") {
    document.addEventListener("DOMContentLoaded", () => {
      for (const [name, answer] of [["calc-bound", bound], ["calc-plan", plan]]) {
        const form = document.getElementById(name);
        if (form) start(form, answer);
      }
    });
  }

  return { general, down, up, claim, reader };
})();
