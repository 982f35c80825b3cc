/* Scores and memberships from the bytes of a CSV file, read as paperlib/core/reading/ reads them.

   What this reader is not sure about, it refuses: `paperlib audit FILE` reads more, and says what to correct. */
"use strict";

const ReadScores = (() => {
  const MOST_ROWS = 1e6;
  const FIRST_LINE = 1 << 20;
  const LONGEST_CELL = 131072; // as in Python's csv

  class Refusal extends Error {}
  const refuse = (why, options = "", or = ": ") => {
    throw new Refusal(`${why.replace(/\s+/g, " ").slice(0, 300)}${or}use \`paperlib audit FILE${options}\``);
  };

  /* ---------------------------------------------------------------- names of columns: columns.py */

  const whole = (pattern) => new RegExp(`^(?:${pattern})$`);
  const PLACE = "(?:val|valid|validation|train|training|test|eval|dev|target|victim|model|mean|avg|average|sum|total|"
    + "per|token|tokens|example|sample|record|row|sequence|word|final|last|epoch|step|raw|lm|mlm)";
  const LOSS = "(?:(?:(?:nll|ce|bce|xent|mse|log|logistic|hinge|squared|lm|(?:binary_|categorical_)?cross_?entropy)_)?"
    + "loss(?:es)?|nlls?|ce|bce|xent|logloss(?:es)?|(?:binary_|categorical_)?cross_?entrop(?:y|ies)"
    + "|(?:log_)?(?:ppls?|perplexit(?:y|ies))|neg(?:ative)?_log_?(?:likelihoods?|lik|probs?|probabilit(?:y|ies))"
    + "|mse|rmse|mae|(?:squared|absolute)_errors?)";
  const SCORE_PLACE = "(?:mia|membership|member|attack|lira|rmia|target|victim|model|mean|avg|average|sum|total|per|token|"
    + "tokens|example|sample|record|sequence|final|(?:true|correct)_(?:class|label))";
  const SCORE = "(?:scores?|log_?probs?|log_probabilit(?:y|ies)|logp|log_?likelihoods?|log_?lik|likelihoods?"
    + "|(?:log_)?confidences?(?:_scores?)?|logits?|member(?:ship)?_prob(?:s|abilit(?:y|ies))?)";
  const LOSSES = whole(`(?:${PLACE}_)*${LOSS}(?:_(?:${PLACE}|[0-9]+))*`);
  const SCORES = whole(`(?:${SCORE_PLACE}_)*${SCORE}(?:_${SCORE_PLACE})*`);
  const MEMBERS = whole("(?:is_|was_)?(?:member|membership|train|training|trained|seen|in_train(?:ing)?(?:_set|_data)?)"
    + "|member(?:ship)?_label|split");
  const OUT = "non_?members?|out|test|hold_?out|held_?out|unseen|val(?:id|idation)?";
  const ROLES = { nonmember: `${OUT}|population`, member: "members?|in|train(?:ing)?|trained|seen" };
  const OPPOSITE = whole(`(?:is_|was_|in_)?(?:${OUT})`);
  const NUMBERED = whole("(?:data_?)?(?:splits?|folds?|sets?|subsets?|partitions?)");
  const INDEX = /^(?:|index|unnamed:? ?\d*|level_\d+)$/i;

  function plain(name) {
    if (!/^\w+(?:[ .\-]\w+)*$/.test(name)) return name;
    return name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").replace(/[ .\-_]+/g, "_").replace(/^_|_$/g, "").toLowerCase();
  }

  const kindOf = (name) => (LOSSES.test(plain(name)) ? "losses" : SCORES.test(plain(name)) ? "scores" : null);
  const tellsMembership = (name) => MEMBERS.test(plain(name));

  function roleOf(name) {
    for (const [role, words] of Object.entries(ROLES)) {
      if (whole(words).test(plain(name))) return [role, ""];
      const match = whole(`(?:${words})_(.+)`).exec(plain(name)) ?? whole(`(.+)_(?:${words})`).exec(plain(name));
      if (match) return [role, match[1]];
    }
    return ["", ""];
  }

  /* Whether the columns are an array of members and one of non-members. */
  function sideBySide(names) {
    const of = (role) => names.filter((name) => roleOf(name)[0] === role);
    const pairs = of("member").flatMap((one) => of("nonmember").filter((two) => roleOf(one)[1] === roleOf(two)[1]).map((two) => [one, two]));
    return pairs.length === 1 && !names.some((name) => !pairs[0].includes(name) && (kindOf(name) || tellsMembership(name)));
  }

  function columnsOf(names) {
    if (sideBySide(names)) refuse("the file holds members and non-members side by side");
    const only = (found, what) => {
      if (found.length === 1) return found[0];
      const listed = found.map((name) => `'${name}'`).join(" and ");
      return refuse(listed ? `${listed} could each hold the ${what}` : `no column is known to hold the ${what}`);
    };
    const member = only(names.filter(tellsMembership), "membership");
    const ids = names.filter((name) => ["id", "record_id", "example_id"].includes(plain(name)));
    const id = ids.length === 1 ? ids[0] : null;
    const free = names.filter((name) => name !== member && name !== id);
    const known = free.filter(kindOf);
    const left = free.length === 1 ? free : free.filter((name) => !INDEX.test(name));
    return { score: only(known.length === 0 && left.length === 1 ? left : known, "score"), member, id };
  }

  /* ---------------------------------------------------------------- cells: tables.py and columns.py */

  const NUMBER = /^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?)$/i;
  const MISSING = new Set(["", "na", "NA", "n/a", "N/A", "#N/A", "<NA>", "nan", "NaN", "NAN", "Nan", "null", "NULL", "Null", "none",
    "None", "NONE", "nil", "NaT"]);
  const MEMBER = new Set(["in", "member", "members", "train", "training", "trained", "seen"]);
  const NONMEMBER = new Set(["out", "nonmember", "nonmembers", "non-member", "non-members", "test", "testing", "val", "valid",
    "validation", "holdout", "hold-out", "heldout", "held-out", "eval", "evaluation", "dev", "population", "unseen"]);
  const ANSWERS = { true: 1, t: 1, yes: 1, y: 1, false: 0, f: 0, no: 0, n: 0 };
  const GROUPED = /^[+-]?[1-9][0-9]{0,2}(?:[.,][0-9]{3})+$/;

  /* Rows as Python's csv.reader gives them with skipinitialspace and strict, their cells stripped; none of a blank line. */
  function* rowsOf(text, separator) {
    const isEnd = (at) => at >= text.length || text[at] === "\n" || text[at] === "\r";
    for (let at = 0; at < text.length; ) {
      const row = [];
      for (let more = !isEnd(at); more; at += more ? 1 : 0) {
        let cell = "";
        while (text[at] === " ") at += 1;
        if (text[at] === '"') {
          for (let open = at + 1; ; open = at + 1) {
            at = text.indexOf('"', open) + 1;
            if (at === 0) refuse("a quote is not closed");
            cell += text.slice(open, at - 1);
            if (text[at] !== '"') break;
            cell += '"';
          }
          if (!isEnd(at) && text[at] !== separator) refuse("a cell goes on behind its quote");
        } else {
          const from = at;
          while (!isEnd(at) && text[at] !== separator) at += 1;
          cell = text.slice(from, at);
        }
        if (cell.length > LONGEST_CELL) refuse("a cell is too long");
        row.push(cell.trim());
        more = text[at] === separator;
      }
      at += text[at] === "\r" && text[at + 1] === "\n" ? 2 : 1;
      yield row;
    }
  }

  const isBlank = (row) => row.every((cell) => cell === "");

  /* The separator that names the most columns in the first line, and their names. */
  function headerOf(text) {
    const found = [",", ";", "\t"].flatMap((separator) => {
      try {
        for (const row of rowsOf(text.slice(0, FIRST_LINE), separator)) if (!isBlank(row)) return [[separator, row]];
      } catch { /* such as a quote that another separator ends */ }
      return [];
    });
    const most = Math.max(...found.map(([, row]) => row.length));
    const best = found.filter(([, row]) => row.length === most);
    if (best.length !== 1) refuse("the first line must name the columns, with commas, semicolons or tabs between them");
    const given = best[0][1].filter((name) => name !== "");
    if (new Set(given).size < given.length) refuse("two columns have the same name");
    if (given.every((name) => NUMBER.test(name.replaceAll(",", ".")))) refuse("the first line holds numbers, and must name the columns");
    return best[0];
  }

  function numbersOf(name, cells, decimalComma) {
    const texts = decimalComma ? cells.map((cell) => cell.replaceAll(",", ".")) : cells;
    const marked = decimalComma ? cells.filter((cell) => /[.,]/.test(cell)) : [];
    if ([",", "."].every((mark) => marked.some((cell) => cell.includes(mark)))) refuse(`column '${name}' mixes decimal commas and points`);
    if (marked.length > 0 && marked.every((cell) => GROUPED.test(cell))) {
      refuse(`the marks of column '${name}' may stand for thousands or for decimals`);
    }
    return texts.map((text, i) => {
      if (!NUMBER.test(text) || !Number.isFinite(Number(text))) refuse(`column '${name}' holds '${cells[i]}' in row ${i + 1}`);
      return Number(text);
    });
  }

  function flagsOf(name, cells, decimalComma) {
    const member = new Map();
    const written = new Set();
    for (const cell of new Set(cells)) {
      const word = cell.toLowerCase().replace(/[ _]/g, "-");
      const text = decimalComma ? word.replaceAll(",", ".") : word;
      const number = NUMBER.test(text) ? Number(text) : ANSWERS[word];
      if (MEMBER.has(word) || NONMEMBER.has(word)) member.set(cell, MEMBER.has(word));
      else if ([0, 1, -1].includes(number)) {
        member.set(cell, number === 1);
        written.add(number);
      } else refuse(`column '${name}' holds '${cell}' in row ${cells.indexOf(cell) + 1}, which is no known word for membership`);
    }
    const unsure = OPPOSITE.test(plain(name)) || NUMBERED.test(plain(name));
    if ((written.has(0) && written.has(-1)) || (written.size > 0 && unsure)) {
      refuse(`what the numbers of column '${name}' mean is not certain`);
    }
    return cells.map((cell) => member.get(cell));
  }

  /* ---------------------------------------------------------------- copies: check_ties of checks.py */

  /* P[Poisson(mean) <= count], as the binomial chance of so many of very many. */
  const poissonUpTo = (count, mean) => 1 - OneRun.tail(count + 1, 1e11, Math.log(mean / (1e11 - mean)));

  /* The smallest mean from which on a condition holds. */
  function meanWhere(holds, most) {
    let [low, high] = [0, most];
    for (let i = 0; i < 60; i += 1) {
      const middle = (low + high) / 2;
      [low, high] = holds(middle) ? [low, middle] : [middle, high];
    }
    return high;
  }

  /* Refuses values that are equal too often for independent records; a warning, or none, about a few. */
  function tiesOf(values, times) {
    const counts = [...times.values()];
    const [alone, pairs, triples] = [1, 2, 3].map((some) => counts.filter((count) => count === some).length);
    const most = 2 * values.length + 100;
    const limit = 1e-3 / 3;
    const copied = () => {
      const fewestPairs = meanWhere((mean) => 1 - poissonUpTo(pairs - 1, mean) >= limit, most);
      const mostAlone = meanWhere((mean) => poissonUpTo(alone, mean) <= limit, most);
      return poissonUpTo(triples, (fewestPairs ** 2 * 2) / 3 / mostAlone) < 1.001 * limit; // also where rounding decides
    };
    const common = counts.reduce(function divisor(a, b) { return b === 0 ? a : divisor(b, a % b); });
    if ((common > 1 && counts.length >= 20) || (pairs > 2 && copied())) refuse("so many values are equal that some rows seem to be copies");
    const exact = [...times].some(([value, count]) => count === 2 && Number(value.toPrecision(7)) !== value);
    return triples === 0 && exact ? [`scores: ${[2 * pairs, values.length].map((n) => n.toLocaleString("en-US")).join(" of ")} are equal to another one; check for copies`] : [];
  }

  /* ---------------------------------------------------------------- a whole file */

  /* One value and one membership per row, and how they were read; `kind` is "scores", "losses" or, by the name, "". */
  function read(bytes, file, kind = "") {
    if (!/\.(?:csv|tsv|txt)$/i.test(file)) refuse("this page reads files that end in .csv, .tsv or .txt");
    const raw = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    const text = raw.replace(/^\ufeff/, "").replace(/[\r\n]+$/, "");
    // U+FFFD stands where a byte is no UTF-8; what strip() of Python takes away is more than trim() does.
    if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffd]/.test(text) || raw.startsWith("PAR1")) refuse("the file is no plain UTF-8 text");
    const [separator, header] = headerOf(text);
    const columns = columnsOf([...new Set(header)]);
    const told = kindOf(columns.score);
    if (kind === "" && told === null) {
      refuse(`column '${columns.score}' does not say which values point to a member: choose it above`, "", ", or ");
    }
    const [score, member, id] = [columns.score, columns.member, columns.id].map((name) => header.indexOf(name));
    const [scores, words, ids] = [[], [], []];
    let [blank, started] = [0, false];
    for (const row of rowsOf(text, separator)) {
      if (row.length === 0 || (!started && isBlank(row))) blank += 1;
      else if (!started) started = true; // the names of the columns
      else if (row.length !== header.length) refuse(`row ${scores.length + 1} has ${row.length} cells for ${header.length} columns`);
      else {
        if ([score, member].some((at) => MISSING.has(row[at]))) refuse(`row ${scores.length + 1} has a missing value`);
        scores.push(row[score]);
        words.push(row[member]);
        if (id >= 0 && row[id] !== "") ids.push(row[id]);
      }
    }
    if (scores.length > MOST_ROWS) refuse("the file has more than a million rows");
    if (new Set(ids).size < ids.length) refuse(`an identifier of column '${columns.id}' stands twice`);
    const values = numbersOf(columns.score, scores, separator !== ",");
    const members = flagsOf(columns.member, words, separator !== ",");
    if (new Set(members).size !== 2) refuse("both members and non-members are needed");
    const used = kind || told;
    const times = OneRun.counted(values);
    const doubt = `column '${columns.score}' was read as ${used}, as chosen here, although its name points to ${told}`;
    const unused = header.filter((name) => ![columns.score, columns.member, columns.id].includes(name));
    return {
      raw, values, members, times, kind: used, blank, unused, source: `${file}, columns '${columns.score}' and '${columns.member}'`,
      warnings: [...(told !== null && told !== used ? [doubt] : []), ...tiesOf(values, times)],
    };
  }

  return { Refusal, refuse, read };
})();
