/* The form of the page "Audit a file in the browser": audit_one_run on the scores of a file; nothing is sent anywhere. */
"use strict";

const AuditFile = (() => {
  const MOST_BYTES = 2e8;
  const IMPLAUSIBLE = 1e-6; // these three as in fair_coins.py
  const DOUBTFUL = 0.01;
  const SELDOM = 0.1;
  const TOSS_NOW = 'design="game" (`--design game` in the shell) tosses coins now';
  const DESIGNS = {
    randomized: {
      adjacency: "adding or removing one example",
      condition: "assumes that a fair coin tossed before training decided each record",
      coins: "every audit example was included in training by its own fair coin, tossed before training",
    },
    played: {
      adjacency: "replacing one example by another",
      condition: "assumes that a fair coin tossed after training decided who is shown: it speaks of replacing one record",
      coins: "after training a fair coin decided for each audit example shown whether it is a member or a non-member from the "
        + "same distribution",
    },
  };
  const ASSUMPTIONS = [
    "a score depends on the example and the trained model, not on membership in any other way",
    "which end of the scores is guessed next, and which coin is only looked at, depends on nothing but the scores and the coins "
      + "revealed before it; threshold search: every guess count at once by a mixture supermartingale",
    "the bound speaks of the training procedure with its randomness, not of this one model",
  ];

  /* coin_warnings; counts that no fair coins give are refused. */
  function coinWarnings(members, nonmembers, design) {
    const [total, larger] = [members + nonmembers, Math.max(members, nonmembers)];
    const chance = Math.min(1, 2 * OneRun.tail(larger, total, 0));
    if (chance < IMPLAUSIBLE) {
      ReadScores.refuse(`${members} members and ${nonmembers} non-members cannot come from fair coins`, " --design game");
    }
    if (chance < DOUBTFUL) {
      return [`${members} members and ${nonmembers} non-members: fair coins give counts this uneven with probability `
        + `${OneRun.general(chance, 2)}. If something else fixed them, a leak can be reported where there is none: guessing the larger `
        + `class every time already looks like an epsilon of ${OneRun.epsilon(larger, total).toFixed(2)}; ${TOSS_NOW}`];
    }
    const equal = OneRun.tail(members, total, 0) - OneRun.tail(members + 1, total, 0);
    if (design === "randomized" && members === nonmembers && equal < SELDOM) {
      return [`exactly as many members as non-members: fair coins give that with probability ${OneRun.general(equal, 2)}. If the counts `
        + `were fixed, this design does not hold, since it needs coins tossed before training; ${TOSS_NOW}`];
    }
    return [];
  }

  /* The main audit of `paperlib audit`, with the names of OneRunResult; `read` is what ReadScores.read returns. */
  function audit(read, { delta = 0, confidence = 0.95, design = "randomized" } = {}) {
    if (design === "game") ReadScores.refuse("this page tosses no coins", " --design game");
    const total = read.values.length;
    const members = read.members.filter(Boolean).length;
    const { adjacency, condition, coins } = DESIGNS[design];
    const values = read.kind === "scores" ? read.values : read.values.map((value) => -value);
    const doubts = coinWarnings(members, total - members, design);
    const reversed = OneRun.reversed(values, read.members, read.times);
    if (reversed?.answer === null) ReadScores.refuse(reversed.text); // a test with random numbers decides
    const saturated = OneRun.saturated(read.values, read.kind === "scores", read.times);
    const { epsilon, correct, guesses } = OneRun.audit(values, read.members, { delta, confidence });
    const mirrored = (reversed === null || reversed.answer) && epsilon === 0 ? OneRun.mirrored(values, read.members, { delta }) : null;
    const doubted = [reversed, saturated, mirrored].some((one) => one?.answer === false);
    const ceiling = OneRun.ceiling(total, { delta, confidence });
    const [d, c] = [Calculator.general(delta), Calculator.general(confidence)];
    const answer = doubted ? { epsilon: null, headline: "", claim: "" } : {
      epsilon,
      headline: `ε ≥ ${Calculator.down(epsilon)} (δ = ${d}, confidence ${c}; ${correct} of ${guesses} guesses right, ${total} examples)`,
      claim: Calculator.claim(epsilon, ceiling, delta, confidence, adjacency),
    };
    return {
      ...answer, condition, assumptions: [coins, ...ASSUMPTIONS],
      warnings: [...(reversed ? [reversed.text] : []), ...read.warnings, ...[saturated, mirrored].flatMap((one) => one?.text ?? []), ...doubts],
      notes: [`${total} examples can show at most ${Calculator.up(ceiling)}, with every guess right.`],
      delta, confidence, design, guess: "adaptive", correct, guesses, total, members, nonmembers: total - members, ceiling,
      kind: read.kind, source: read.source, blank_lines: read.blank, unused_columns: read.unused,
    };
  }

  /* ---------------------------------------------------------------- the form */

  const element = (name, text, className = "") => Object.assign(document.createElement(name), { textContent: text, className });

  function shown(result, file) {
    const points = result.kind === "scores" ? "high" : "low";
    const skipped = [
      ...(result.blank_lines ? [`${result.blank_lines} blank ${result.blank_lines === 1 ? "line" : "lines"}`] : []),
      ...(result.unused_columns.length ? [`unused columns ${result.unused_columns.map((name) => `'${name}'`).join(", ")}`] : []),
    ];
    const assumptions = document.createElement("ul");
    assumptions.append(...result.assumptions.map((text) => element("li", text)));
    const save = element("a", "Download the result as JSON", "calc-button");
    save.download = `${file.replace(/\.[^.]*$/, "")}-audit.json`;
    save.href = URL.createObjectURL(new Blob([`${JSON.stringify(result, null, 2)}\n`], { type: "application/json" }));
    return [
      element("p", result.headline || "No answer: see the warnings.", "calc-number"),
      ...[result.condition, result.claim && `Claim: ${result.claim}`, ...result.notes].filter(Boolean).map((text) => element("p", text)),
      ...result.warnings.map((text) => element("p", `Warning: ${text}`, "receipt-bad")),
      element("p", `${result.total} rows of ${result.source}, read as ${result.kind} (${points} values point to members): `
        + `${result.members} members, ${result.nonmembers} non-members.`),
      element("p", `Skipped: ${skipped.join("; ") || "nothing"}.`),
      element("p", "Assumptions:"), assumptions, save,
    ];
  }

  function attach(form) {
    const output = form.querySelector("[role=status]");
    const input = form.elements.file;
    const reader = Calculator.reader(form);
    const pause = () => new Promise((resolve) => { setTimeout(resolve, 20); }); // so that the words are seen
    let latest = 0;
    async function answer([file, ...others], isLatest) {
      const [delta, confidence] = [reader.delta(), reader.confidence()];
      if (Number.isNaN(delta + confidence)) return [element("p", "Correct the marked fields.")];
      if (others.length > 0) ReadScores.refuse("this page reads one file", " FILE2");
      if (file.size > MOST_BYTES) ReadScores.refuse("the file has more than 200 MB");
      output.replaceChildren(element("p", "Reading …"));
      await pause();
      const read = ReadScores.read(new Uint8Array(await file.arrayBuffer()), file.name, form.elements.kind.value);
      if (!isLatest()) return [];
      output.replaceChildren(element("p", `Computing the bound of ${read.values.length} rows …`));
      await pause();
      const result = audit(read, { delta, confidence, design: form.elements.design.value });
      const inputs = { [file.name]: Receipt.sha256(read.raw) };
      return shown({ format: "paperlib audit in the browser", version: 1, ...result, inputs }, file.name);
    }
    async function run() {
      latest += 1;
      const turn = latest;
      const refused = (error) => {
        const known = error instanceof ReadScores.Refusal;
        const why = known ? error.message : `the file cannot be read (${error.message}): use \`paperlib audit FILE\``;
        return [element("p", `Refused: ${why}`, "receipt-bad")];
      };
      const nodes = input.files.length ? await answer(input.files, () => turn === latest).catch(refused) : [];
      if (turn === latest) output.replaceChildren(...nodes);
    }
    form.addEventListener("change", run);
    form.addEventListener("submit", (event) => { event.preventDefault(); run(); });
    const mark = (over) => (event) => { event.preventDefault(); form.classList.toggle("calc-over", over); };
    form.addEventListener("dragover", mark(true));
    form.addEventListener("dragleave", mark(false));
    form.addEventListener("drop", (event) => {
      mark(false)(event);
      input.files = event.dataTransfer.files;
      run();
    });
  }

  return { audit, attach, coinWarnings };
})();

if (typeof document !== "undefined") {
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("#audit-file").forEach(AuditFile.attach));
}
