/* The receipt of a planned audit: recomputes the hashes of plan, coins and scores and the bound, without a network.

   A receipt holds plan, coins and scores as the texts that were hashed, so that no number is written anew. */
"use strict";

const Receipt = (() => {
  const [NO_ANSWER, UNDECIDED] = ["No answer", "Not decided here"]; // begin a finding that makes the number none, or may
  const FORMATS = { plan: "paperlib sealed plan", coins: "paperlib coins" };

  /* FIPS 180-4; browsers offer crypto.subtle to pages from a server only. */
  function sha256(text) {
    const bytes = new TextEncoder().encode(text);
    const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6);
    padded.set(bytes);
    padded[bytes.length] = 0x80;
    const view = new DataView(padded.buffer);
    view.setUint32(padded.length - 8, Math.floor(bytes.length / 0x20000000));
    view.setUint32(padded.length - 4, bytes.length << 3);
    const primes = [];
    for (let n = 2; primes.length < 64; n += 1) if (primes.every((p) => n % p)) primes.push(n);
    const bits = (root) => Math.floor((root - Math.floor(root)) * 0x100000000) | 0;
    const k = primes.map((p) => bits(Math.cbrt(p)));
    const hash = primes.slice(0, 8).map((p) => bits(Math.sqrt(p)));
    const turn = (x, n) => (x >>> n) | (x << (32 - n));
    const w = new Int32Array(64);
    for (let block = 0; block < padded.length; block += 64) {
      for (let i = 0; i < 64; i += 1) {
        if (i < 16) w[i] = view.getInt32(block + 4 * i);
        else {
          const [x, y] = [w[i - 15], w[i - 2]];
          w[i] = w[i - 16] + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + w[i - 7] + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10));
        }
      }
      let [a, b, c, d, e, f, g, h] = hash;
      for (let i = 0; i < 64; i += 1) {
        const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
        const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
      }
      [a, b, c, d, e, f, g, h].forEach((value, i) => { hash[i] = (hash[i] + value) | 0; });
    }
    return hash.map((value) => (value >>> 0).toString(16).padStart(8, "0")).join("");
  }

  /* What a report says and what it holds, from its page. */
  function read(page) {
    const block = page.getElementById("audit-receipt");
    if (!block) return null;
    const words = (node) => (node ? node.textContent.trim() : "");
    const texts = (name) => Object.fromEntries([...page.querySelectorAll(`[data-${name}]`)]
      .map((node) => [node.dataset[name], words(node)]));
    const result = JSON.parse(words(page.getElementById("audit-result")) || "{}");
    const numbers = [...page.querySelectorAll("[data-headline]")].map(words);
    return {
      receipt: JSON.parse(block.textContent),
      printed: { hashes: texts("hash"), plan: texts("plan"), headline: numbers.length > 1 ? "several numbers" : numbers[0] ?? "",
        epsilon: result.audits?.[0]?.result?.epsilon ?? null, answer: result.epsilon ?? null },
    };
  }

  /* Findings on a receipt: {good, text}. `published` has the hashes of plan and coins as the reader knows them. */
  function verify({ receipt, printed }, published = {}) {
    const findings = [];
    const say = (good, right, wrong) => findings.push({ good, text: good ? right : wrong });
    const parsed = {};
    for (const name of ["plan", "coins", "scores"]) {
      const found = sha256(receipt[name]);
      say(found === printed.hashes[name], `The hash of the ${name} is the one that the report names.`,
        `Changed: the hash of the ${name} is ${found}, and the report names ${printed.hashes[name]}.`);
      if (name in FORMATS) {
        const given = (published[name] ?? "").trim().toLowerCase();
        if (given === "") say(null, "", `Not compared: no published hash of the ${name} was entered.`);
        else say(found === given, `The published hash of the ${name} is that of this receipt.`,
          `The published hash of the ${name} is another one: here it is ${found}.`);
      }
      try {
        parsed[name] = JSON.parse(receipt[name]);
      } catch {
        say(false, "", `Changed: this is no JSON, and should be the ${name}.`);
        return findings;
      }
    }
    const { plan, coins, scores } = parsed;
    for (const [name, format] of Object.entries(FORMATS)) {
      if (parsed[name].format !== format || parsed[name].version !== 1) {
        say(false, "", `This page reads version 1 of "${format}", and the ${name} are something else.`);
        return findings;
      }
    }
    say(plan.coins === sha256(receipt.coins), "The plan names these coins.",
      `The plan names other coins, with the hash ${plan.coins}.`);
    const plain = (text) => String(text).replace(/\s+/g, " ").trim();
    const same = (text, value) => (typeof value === "number" ? Number(text) === value : plain(text) === plain(value));
    const own = ["format", "version", "coins", "salt"];
    const shown = Object.keys(plan).filter((name) => !own.includes(name) && plan[name] !== "" && plan[name] !== null);
    const differ = [...new Set([...shown, ...Object.keys(printed.plan)])]
      .filter((name) => !(name in printed.plan) || !same(printed.plan[name], plan[name]));
    say(differ.length === 0, "The table shows the plan as it was sealed.",
      `Changed: the table shows another plan than the sealed one: ${differ.map((name) => `${name} is ${plan[name]}`).join(", ")}.`);
    say(null, "", `The plan as it was sealed: ${shown.map((name) => `${name.replace("_", " ")}: ${plan[name]}`).join("; ")}.`);
    const members = [...coins.coins].map((coin) => coin === "1");
    const whole = Array.isArray(scores) && scores.every(Number.isFinite) && scores.length === members.length
      && members.length === coins.ids.length;
    say(whole, `There is one score for each of ${members.length} coins, ${members.filter(Boolean).length} of them members.`,
      "Changed: there is not one score for each coin.");
    if (!whole) return findings;
    const oriented = plan.direction === "higher" ? scores : scores.map((value) => -value);
    const bound = OneRun.audit(oriented, members, plan);
    const floor = (Math.floor(bound.epsilon * 1000 + 1e-6) / 1000).toFixed(3);
    const again = `ε ≥ ${floor} (${bound.correct} of ${bound.guesses} guesses right)`;
    const [, number] = /^ε ≥ ([0-9.]+) /.exec(printed.headline) ?? [];
    const near = Math.abs(bound.epsilon - printed.epsilon) <= 1e-8 && printed.epsilon !== null;
    const equal = near && number !== undefined && Number(number) <= bound.epsilon + 1e-8 && bound.epsilon - number < 0.001 + 1e-8;
    say(equal, `The bound computed again is ${again}; the report prints ${printed.headline}.`,
      `Changed: the bound computed again is ${again}; the report prints ${printed.headline || "none"} and holds ${printed.epsilon}.`);
    const reversed = OneRun.reversed(oriented, members);
    const other = reversed === null && bound.epsilon === 0 ? OneRun.mirrored(oriented, members, plan) : null;
    const doubts = [reversed, OneRun.saturated(scores, plan.direction === "higher"), other].filter(Boolean);
    const undecided = doubts.some((one) => one.answer === null);
    const open = undecided && printed.answer !== null;
    const none = undecided ? !open : doubts.some((one) => one.answer === false);
    for (const { answer, text } of doubts) {
      if (answer !== null) say(null, "", `${answer ? "Warning" : NO_ANSWER}: ${text}.`);
      else if (open) say(null, "", `${UNDECIDED}: ${text}; \`paperlib verify\` asks them.`);
      else say(null, "", `${NO_ANSWER}: ${text}; the report has it that it is not, and \`paperlib verify\` asks them.`);
    }
    if (!undecided && none !== (printed.answer === null)) {
      say(false, "", `Changed: the scores give ${none ? "no" : "an"} answer, and the report holds ${printed.answer ?? "none"}.`);
    }
    if (coins.seed !== null) {
      say(null, "", `Warning: the coins were tossed with the seed ${coins.seed}: whoever knows the seed knows the coins.`);
    }
    if (plan.limit !== null) {
      const most = OneRun.ceiling(members.length, plan);
      const few = `gives no answer, as so few examples can show at most epsilon ${most.toFixed(3)}`;
      const passed = open ? "is not judged here" : most <= plan.limit ? few : "did not exceed it";
      const judged = none ? "gives no answer, and fails" : bound.epsilon > plan.limit ? "failed" : passed;
      say(null, "", `The planned limit is ${plan.limit}: the audit ${judged}.`);
    }
    return findings;
  }

  /* The form of a page: it checks that page, or the report that the reader chooses. */
  function attach(form) {
    const output = form.querySelector("[role=status]");
    const file = form.querySelector("input[type=file]");
    const show = (findings) => {
      const bad = findings.filter((one) => one.good === false).length;
      const begins = (words) => findings.some((one) => one.text.startsWith(words));
      const [none, open] = [begins(NO_ANSWER), begins(UNDECIDED)];
      const good = none ? "No answer: the page agrees with its receipt, and its number says nothing of the model."
        : open ? "All that is checked here agrees; only `paperlib verify` can tell whether the number is an answer."
          : begins("Not compared") ? "Page, plan, coins, scores and bound agree. A page made anew would agree as well: enter the published hashes."
            : "Every check passed.";
      const title = document.createElement("p");
      title.className = bad || none || open ? "receipt-bad" : "receipt-good";
      title.textContent = bad ? `${bad} ${bad === 1 ? "check" : "checks"} failed.` : good;
      const list = document.createElement("ul");
      for (const one of findings) {
        const item = document.createElement("li");
        item.textContent = `${one.good === null ? "–" : one.good ? "✓" : "✗"} ${one.text}`;
        if (one.good === false) item.className = "receipt-bad";
        list.append(item);
      }
      output.replaceChildren(title, list);
    };
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      output.textContent = "Computing …";
      await new Promise((resolve) => { setTimeout(resolve, 20); }); // so that the words are seen
      try {
        const chosen = file?.files?.[0];
        const page = file ? new DOMParser().parseFromString(chosen ? await chosen.text() : "", "text/html") : document;
        const found = read(page);
        show(found ? verify(found, { plan: form.elements.plan.value, coins: form.elements.coins.value })
          : [{ good: false, text: "Choose the report of a planned audit; this one holds no receipt." }]);
      } catch (error) {
        show([{ good: false, text: `This receipt cannot be read (${error.message}).` }]);
      }
    });
  }

  return { sha256, read, verify, attach };
})();

if (typeof document !== "undefined") {
  const start = () => document.querySelectorAll("form.receipt").forEach(Receipt.attach);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
}
