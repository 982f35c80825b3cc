/* The receipt of a planned audit: computes hashes, bound and claim from plan, coins and scores, without a network.

   A receipt holds the three as the texts that were hashed. Of the page around it nothing is read, and nothing is said. */
"use strict";

const Receipt = (() => {
  const BLOCK = "<script type='application/json' id='audit-receipt'>"; // as in differences.py
  const LARGE_SEED = /"seed":([1-9]\d{15,4000}),"unit":"(?:[^"\\]|\\.)*","version":1}$/;
  const LONGEST = 2000; // characters of a text of a plan
  const FORMATS = { plan: "paperlib sealed plan", coins: "paperlib coins" };
  const CHOICES = {
    direction: ["higher", "lower"],
    guess: ["adaptive", "both", "members", "nonmembers"],
    design: ["randomized"],
    adjacency: ["add/remove"],
  };
  const NUMBERS = {
    delta: (value) => value >= 0 && value < 1,
    confidence: (value) => value > 0 && value < 1,
    claimed_epsilon: (value) => value === null || (value >= 0 && value < Infinity),
    limit: (value) => value === null || (value >= 0 && value < Infinity),
  };
  const TEXTS = ["coins", "score", "direction", "guess", "design", "adjacency", "unit", "scores", "model", "attack", "mechanism",
    "accountant", "sampling", "notes"];
  const FIELDS = ["format", "version", ...TEXTS, ...Object.keys(NUMBERS), "sealed", "salt"];
  const CLAIMED = /^\s*gaussian\s*\([^()]{1,1900}\)\s*$/;
  const OF_COINS = ["format", "version", "ids", "coins", "sealed", "column", "unit", "records", "seed", "salt"];

  class Refusal extends Error {}
  const refuse = (message) => { throw new Refusal(message); };

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

  /* A number as Python writes a float. */
  function floatText(value) {
    if (Object.is(value, -0)) return "-0.0";
    const [, sign, first, , rest = "", power] = /^(-?)(\d)(\.(\d+))?e([+-]\d+)$/.exec(value.toExponential());
    const digits = first + rest;
    const place = Number(power) + 1; // of the point, from the left
    if (place < -3 || place > 16) {
      return `${sign}${first}${rest && `.${rest}`}e${power[0]}${power.slice(1).padStart(2, "0")}`;
    }
    if (place <= 0) return `${sign}0.${"0".repeat(-place)}${digits}`;
    if (place >= digits.length) return `${sign}${digits.padEnd(place, "0")}.0`;
    return `${sign}${digits.slice(0, place)}.${digits.slice(place)}`;
  }

  const stringText = (text) => JSON.stringify(text)
    .replace(/[\u007f-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);

  /* sealed_text of the library, in which the numbers called `isFloat` are floats. */
  function sealedText(value, isFloat, name = "") {
    if (typeof value === "string") return stringText(value);
    if (typeof value === "number") return isFloat(name) ? floatText(value) : String(value);
    if (Array.isArray(value)) return `[${value.map((item) => sealedText(item, isFloat, name)).join(",")}]`;
    if (value === null || typeof value !== "object") return String(value);
    const pairs = Object.keys(value).sort().map((key) => `${stringText(key)}:${sealedText(value[key], isFloat, key)}`);
    return `{${pairs.join(",")}}`;
  }

  /* An object of a sealed text, which it must be the text of: no key twice, nothing left out. */
  function parsed(name, text) {
    let content = null;
    try {
      content = JSON.parse(text);
    } catch {
      refuse(`the ${name} cannot be read`);
    }
    const whole = content !== null && typeof content === "object" && finite(content)
      && sealedText(content, (key) => name === "scores" || key in NUMBERS) === text;
    if (!whole) refuse(`the ${name} are not as the commands of paperlib seal them`.replace("plan are", "plan is"));
    return content;
  }

  /* Whether all numbers of a value, of at most two levels, are finite. */
  const finite = (content) => Object.values(content).flat()
    .every((value) => value === null || (typeof value !== "object" && (typeof value !== "number" || Number.isFinite(value))));

  const isText = (value) => typeof value === "string";
  const isCount = (value) => Number.isInteger(value) && value >= 0;
  const hasKeys = (content, names) => Object.keys(content).sort().join() === [...names].sort().join();

  function checkPlan(plan) {
    const names = "claimed" in plan ? [...FIELDS, "claimed"] : FIELDS; // a curve, tested beside the bound
    const good = hasKeys(plan, names) && (!("claimed" in plan) || (isText(plan.claimed) && CLAIMED.test(plan.claimed)))
      && plan.format === FORMATS.plan && plan.version === 1
      && [...TEXTS, "sealed", "salt"].every((name) => isText(plan[name]))
      && TEXTS.every((name) => [...plan[name]].length <= LONGEST)
      && Object.entries(CHOICES).every(([name, allowed]) => allowed.includes(plan[name]))
      && Object.entries(NUMBERS).every(([name, allows]) => (plan[name] === null || typeof plan[name] === "number") && allows(plan[name]))
      && plan.delta !== null && plan.confidence !== null
      && /^[0-9a-f]{64}$/.test(plan.coins) && plan.score !== "" && !plan.scores.includes("/") && plan.scores !== ".";
    if (!good) refuse("the plan is not as `paperlib seal` writes it");
  }

  function checkCoins(coins) {
    const names = "copies" in coins ? [...OF_COINS, "copies"] : OF_COINS;
    const good = hasKeys(coins, names) && coins.format === FORMATS.coins && coins.version === 1
      && Array.isArray(coins.ids) && coins.ids.every((id) => isText(id) && id !== "") && new Set(coins.ids).size === coins.ids.length
      && isText(coins.coins) && /^[01]*$/.test(coins.coins) && coins.coins.length === coins.ids.length
      && ["sealed", "column", "unit", "salt"].every((name) => isText(coins[name]))
      && isCount(coins.records) && (coins.seed === null || isCount(coins.seed)) && (!("copies" in coins) || (isCount(coins.copies) && coins.copies > 0));
    if (!good) refuse("the coins are not as `paperlib coins` writes them");
  }

  /* Plan, coins and scores of the text of a page, and both hashes; a Refusal where Python refuses them as well. */
  function read(page) {
    const pieces = page.replaceAll("\r\n", "\n").split(BLOCK);
    if (pieces.length === 1) refuse("this is no report of a planned audit: it holds no receipt");
    if (pieces.length > 2) refuse("this page holds several receipts");
    let texts = null;
    try {
      texts = JSON.parse(pieces[1].split("</script>")[0]);
    } catch { /* said below */ }
    if (![texts?.plan, texts?.coins, texts?.scores].every(isText)) refuse("the receipt cannot be read");
    const seed = LARGE_SEED.exec(texts.coins)?.[1]; // a seed that no number of JavaScript holds
    const held = seed === undefined ? texts.coins : texts.coins.replace(LARGE_SEED, (end) => end.replace(seed, "0"));
    const [plan, coins, scores] = [parsed("plan", texts.plan), parsed("coins", held), parsed("scores", texts.scores)];
    checkPlan(plan);
    checkCoins(coins);
    const isScore = (value) => Number.isFinite(value) || value === "inf" || value === "-inf";
    if (!Array.isArray(scores) || !scores.every(isScore)) refuse("the scores are no numbers");
    if (scores.length !== coins.ids.length) refuse(`${scores.length} scores for ${coins.ids.length} coins`);
    coins.seed = seed ?? coins.seed;
    const hashes = { plan: sha256(texts.plan), coins: sha256(texts.coins) };
    if (plan.coins !== hashes.coins) refuse(`the plan names other coins, with the hash ${plan.coins}`);
    const unit = coins.unit || "record";
    if (plan.unit !== "" && plan.unit !== unit) refuse(`the unit of the plan is ${plan.unit}, and what has a coin is ${unit}`);
    return { plan, coins, scores, hashes };
  }

  /* one_example of the library: what one example is, where it is no record of the data. */
  function oneExample(coins) {
    if (!coins.copies) return coins.unit ? `One example is one unit of ${coins.unit}: all its rows, their values averaged.` : "";
    const canary = "One example is one canary, a record that was made for the audit";
    return coins.copies === 1 ? `${canary}.`
      : `${canary}, with all its ${coins.copies} copies: ${coins.copies} records that come and go together.`;
  }

  /* Number, claim, warnings and judgement of a receipt: `answer` is "number", "none", or "unknown" where only Python can tell. */
  function compute({ plan, coins, scores }) {
    const members = [...coins.coins].map((coin) => coin === "1");
    const [total, included] = [members.length, members.filter(Boolean).length];
    if (included === 0 || included === total) refuse("all coins fell on one side");
    if (scores.some(isText)) {
      const reasons = ["some scores are infinite, and this form computes with finite ones"];
      return { answer: "unknown", reasons, warnings: [], epsilon: null, limit: judged(plan, null, 0, false) };
    }
    const times = OneRun.counted(scores);
    const doubtsOnCoins = AuditFile.coinWarnings(included, total - included, plan.design);
    const ties = coins.unit ? [] : ReadScores.tiesOf(scores, members, times);
    const oriented = plan.direction === "higher" ? scores : scores.map((value) => -value);
    const { epsilon, correct, guesses } = OneRun.audit(oriented, members, plan);
    const reversed = OneRun.reversed(oriented, members, times);
    const mirrored = (reversed === null || reversed.answer) && epsilon === 0 ? OneRun.mirrored(oriented, members, plan) : null;
    const doubts = [reversed, OneRun.saturated(scores, plan.direction === "higher", times), mirrored].filter(Boolean);
    const none = doubts.filter((doubt) => doubt.answer === false);
    const unknown = doubts.filter((doubt) => doubt.answer === null);
    const seed = coins.seed === null ? []
      : [`the coins were tossed with the seed ${coins.seed}: whoever knows the seed knows the coins`];
    const warnings = [...ties, ...doubts.filter((doubt) => doubt.answer).map((doubt) => doubt.text), ...seed, ...doubtsOnCoins];
    if (none.length || unknown.length) {
      const reasons = (none.length ? none : unknown).map((doubt) => doubt.text);
      return { answer: none.length ? "none" : "unknown", reasons, warnings, epsilon: null, limit: judged(plan, null, 0, none.length) };
    }
    const most = { members: included, nonmembers: total - included }[plan.guess] ?? total;
    const ceiling = OneRun.ceiling(most, { ...plan, total });
    const [d, c] = [OneRun.general(plan.delta), OneRun.general(plan.confidence)];
    return {
      answer: "number", reasons: [], warnings, epsilon,
      headline: `ε ≥ ${OneRun.down(epsilon)} (δ = ${d}, confidence ${c}; ${correct} of ${guesses} guesses right, ${total} examples)`,
      claim: [Calculator.claim(epsilon, ceiling, plan.delta, plan.confidence), oneExample(coins)].filter(Boolean).join(" "),
      limit: judged(plan, epsilon, ceiling, false),
    };
  }

  /* What the planned limit says of the number: {limit, passed, text}; `passed` is null where only Python can tell. */
  function judged({ limit }, epsilon, ceiling, isNone) {
    if (limit === null) return { limit, passed: null, text: "The plan names no limit." };
    const name = `The planned limit is ${OneRun.general(limit)}`;
    if (isNone) return { limit, passed: false, text: `${name}: failed, as there is no answer.` };
    if (epsilon === null) return { limit, passed: null, text: `${name}: not judged here.` };
    if (epsilon > limit) return { limit, passed: false, text: `${name}: failed, as epsilon is above it.` };
    if (ceiling <= limit) {
      return { limit, passed: false, text: `${name}: failed, as so few examples can show at most ${(Math.ceil(ceiling * 1000) / 1000).toFixed(3)}.` };
    }
    return { limit, passed: true, text: `${name}: not exceeded.` };
  }

  /* What is said of a published hash, "" for none: {same, text}. */
  function compared(name, typed, hash) {
    const published = typed.trim().toLowerCase();
    if (published === "") return { same: null, text: `Not compared: no published hash of the ${name} was entered.` };
    const same = published === hash;
    return { same, text: `The published hash of the ${name} is ${same ? "that of this receipt" : "another one"}.` };
  }

  /* ---------------------------------------------------------------- the form */

  const element = (name, text, className = "") => Object.assign(document.createElement(name), { textContent: text, className });

  function planTable(plan, hashes) {
    const made = ["format", "version", "coins", "salt"];
    const fields = Object.entries(plan).filter(([name, value]) => !made.includes(name) && value !== "" && value !== null);
    const rows = [...fields.map(([name, value]) => [name.replace("_", " "), String(value)]),
      ["hash of the plan", hashes.plan], ["hash of the coins", hashes.coins]];
    const table = element("table", "");
    table.append(element("caption", "The plan as it was sealed"), ...rows.map(([name, value]) => {
      const [row, heading] = [element("tr", ""), element("th", name)];
      heading.scope = "row";
      row.append(heading, element("td", value, "receipt-value"));
      return row;
    }));
    return table;
  }

  /* The nodes that show a receipt with the hashes that the reader knows. */
  function shown(receipt, published) {
    const result = compute(receipt);
    const title = { none: "No answer", unknown: "No number here: `paperlib verify` computes it" }[result.answer];
    const hashes = ["plan", "coins"].map((name) => compared(name, published[name], receipt.hashes[name]));
    const warnings = [...result.reasons, ...result.warnings.map((text) => `Warning: ${text}`)];
    return [
      element("p", title ?? result.headline, "calc-number receipt-number"),
      ...(result.claim ? [element("p", result.claim, "receipt-large")] : []),
      element("p", result.limit.text, `receipt-large${result.limit.passed === false ? " receipt-bad" : ""}`),
      ...hashes.map(({ same, text }) => element("p", text, same === false ? "receipt-bad" : "")),
      ...warnings.map((text) => element("p", `${text}.`, "receipt-bad")),
      planTable(receipt.plan, receipt.hashes),
      element("p", "Computed here from plan, coins and scores alone. What else the report says was not read: `paperlib verify` "
        + "compares it with these."),
    ];
  }

  function attach(form) {
    const output = form.querySelector("[role=status]");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      output.textContent = "Computing …";
      await new Promise((resolve) => { setTimeout(resolve, 20); }); // so that the words are seen
      try {
        const file = form.querySelector("input[type=file]").files[0] ?? refuse("choose the report of a planned audit");
        const page = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer());
        output.replaceChildren(...shown(read(page), { plan: form.elements.plan.value, coins: form.elements.coins.value }));
      } catch (error) {
        const known = error instanceof Refusal || error instanceof ReadScores.Refusal;
        output.replaceChildren(element("p", `No number: ${known ? error.message : `the report cannot be read (${error.message})`}.`, "receipt-bad"));
      }
    });
  }

  return { Refusal, sha256, sealedText, read, compute, compared, attach };
})();

if (typeof document !== "undefined") {
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("form.receipt").forEach(Receipt.attach));
}
