/* Scores and memberships from the bytes of a CSV file, read as paperlib/reading/ reads them.

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

  /* ---------------------------------------------------------------- copies: find_ties of checks.py */

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

  const TIES_LEVEL = 1e-3;
  const FEW_TIMES = 5;
  const RECORDS_LEVEL = 1e-6;
  const FEWEST_REPEATS = 8;
  const WINDOW = 25;
  const COPIES = "so many values are equal that some rows seem to be copies";

  /* _check_numbers_of_ties: refuses values of which too many stand equally often, whose copies rows would be. */
  function checkNumbersOfTies(numbers, rows) {
    const most = 2 * rows + 100;
    numbers.forEach((equal, times) => {
      if (times < 2 || equal <= 2) return;
      const level = TIES_LEVEL / (times === 2 ? 1 : (times - 1) * (times - 2)) / 3;
      const leastEqual = meanWhere((mean) => 1 - poissonUpTo(equal - 1, mean) >= level, most);
      const mostFewer = meanWhere((mean) => poissonUpTo(numbers[times - 1], mean) <= level, most);
      const leastMore = (leastEqual ** 2 * times) / (times + 1) / mostFewer;
      // A little above the level, too, where rounding decides.
      if (poissonUpTo(numbers[times + 1] ?? 0, leastMore) < 1.001 * level) refuse(COPIES);
    });
  }

  /* Of a number that is not 0: its exponent to base 2, and how many binary digits it needs. */
  const exponentOf = (value) => ((new DataView(new Float64Array([value]).buffer).getUint32(4, true) >>> 20) & 0x7ff) - 1023;
  const bitsOf = (value) => Math.abs(value).toString(2).replace(".", "").replace(/^0+|0+$/g, "").length;

  /* _are_precise: more than seven digits, and no number of half precision. */
  const isPrecise = (value) => Number(value.toPrecision(7)) !== value && bitsOf(value) > 11;

  /* The distance to the next number of the precision that a value has; see _chance_explains of checks.py. */
  function stepOf(value) {
    if (value === 0 || bitsOf(value) > 24) return 2 ** (exponentOf(value) - 52);
    const step = 2 ** (exponentOf(value) - 23);
    return Math.abs(value) < 2 ** -6 ? Math.max(step, 2 ** -20) : step;
  }

  /* _chance_explains: whether values that stand so often have the pairs of equal rows that their precision makes. */
  function chanceExplains(times, most) {
    const ascending = [...times].filter(([value]) => Number.isFinite(value)).sort(([a], [b]) => a - b);
    let rows = 0;
    const upTo = ascending.map(([, count]) => (rows += count));
    let [pairs, expected] = [0, 0];
    ascending.forEach(([value, count], i) => {
      const [first, last] = [Math.max(i - 10, 0), Math.min(i + 10, ascending.length - 1)];
      const density = (upTo[last] - upTo[first]) / (ascending[last][0] - ascending[first][0]);
      if (Number.isFinite(density)) expected += (count * density * stepOf(value)) / 2;
      if (count >= 2 && count <= most && isPrecise(value)) pairs += (count * (count - 1)) / 2;
    });
    return pairs === 0 || 1 - poissonUpTo(pairs - 1, expected) >= TIES_LEVEL;
  }

  /* _are_odd: precise values that stand together as neither chance nor rounding explains. */
  function areOdd(times, numbers) {
    if (!numbers[3] && !chanceExplains(times, 2)) return true;
    const rows = [...times.values()].reduce((sum, count) => sum + count, 0);
    const getMore = numbers.slice(3, FEW_TIMES + 1).some((count, i) => count > numbers[2 + i]);
    return 2 * numbers[1] > rows && getMore && !chanceExplains(times, FEW_TIMES);
  }

  /* P of so many of `total` events, or of a more unusual number, at most: Hoeffding's bound. */
  function hoeffding(observed, expected, total) {
    const [rate, mean] = [observed / total, Math.min(Math.max(expected / total, 0), 1)];
    const term = (x, y) => (x === 0 ? 0 : x * Math.log(x / y));
    return Math.exp(-total * (term(rate, mean) + term(1 - rate, 1 - mean)));
  }

  /* How often values that stand in several rows do so, and among members; by the codes of the rows, null for none. */
  function repeatsOf(codes, members) {
    const [counts, inside] = [new Map(), new Map()];
    codes.forEach((code, i) => {
      if (code === null) return;
      counts.set(code, (counts.get(code) ?? 0) + 1);
      inside.set(code, (inside.get(code) ?? 0) + (members[i] ? 1 : 0));
    });
    return [...counts].filter(([, count]) => count > 1).map(([code, count]) => ({ code, count, members: inside.get(code) }));
  }

  const isMixed = ({ count, members }) => members > 0 && members < count;
  const mixedByChance = (count, share) => 1 - share ** count - (1 - share) ** count;

  /* copies_of_one_side: refuses equal values that stand on one side more often than their neighbours explain. */
  function checkSidesOfTies(values, members) {
    const order = values.map((_, i) => i).sort((i, j) => values[i] - values[j]);
    const starts = new Map();
    const before = [0];
    order.forEach((row, place) => {
      if (!starts.has(values[row])) starts.set(values[row], place);
      before.push(before[place] + (members[row] ? 1 : 0));
    });
    const repeats = repeatsOf(values, members);
    if (repeats.length < FEWEST_REPEATS) return;
    const chances = repeats.map(({ code, count }) => {
      const start = starts.get(code);
      const end = start + count;
      const [first, last] = [Math.max(start - WINDOW, 0), Math.min(end + WINDOW, values.length)];
      const [left, right] = [before[start] - before[first], before[last] - before[end]];
      const shares = [left / Math.max(start - first, 1), right / Math.max(last - end, 1), (left + right) / Math.max(start - first + last - end, 1)];
      const farthest = shares.reduce((best, share) => (Math.abs(share - 0.5) > Math.abs(best - 0.5) ? share : best));
      return mixedByChance(count, farthest);
    });
    const expected = chances.reduce((sum, chance) => sum + chance, 0);
    const mixed = repeats.filter(isMixed).length;
    if (mixed < expected && hoeffding(mixed, expected, repeats.length) <= 1.001 * RECORDS_LEVEL) refuse(COPIES);
  }

  /* Refuses a column that may name units, or records of both sides; whether it does, only the command can tell. */
  function checkColumn(name, cells, members) {
    const present = cells.filter((cell) => !MISSING.has(cell));
    const isNumber = (cell) => NUMBER.test(cell.replace(",", "."));
    if (present.every(isNumber) && present.some((cell) => Number(cell.replace(",", ".")) % 1 !== 0)) return; // measured
    const numbers = new Map();
    const codes = cells.map((cell) => {
      if (MISSING.has(cell)) return null;
      if (!numbers.has(cell)) numbers.set(cell, numbers.size);
      return numbers.get(cell);
    });
    const repeats = repeatsOf(codes, members);
    if (repeats.length < FEWEST_REPEATS) return;
    const share = members.filter(Boolean).length / members.length;
    const expected = repeats.reduce((sum, { count }) => sum + mixedByChance(count, share), 0);
    if (hoeffding(repeats.filter(isMixed).length, expected, repeats.length) <= 1.001 * RECORDS_LEVEL) {
      refuse(`column '${name}' may name units of several rows, or records of both sides: leave it out of the file if it does not`);
    }
  }

  /* Refuses values that are equal too often for independent records; a warning, or none, about a few. */
  function tiesOf(values, members, times) {
    const counts = [...times.values()];
    const common = counts.reduce(function divisor(a, b) { return b === 0 ? a : divisor(b, a % b); });
    if (common > 1 && counts.length >= 20) refuse(COPIES);
    const numbers = new Array(Math.max(4, 1 + counts.reduce((most, count) => Math.max(most, count)))).fill(0);
    for (const count of counts) numbers[count] += 1;
    checkNumbersOfTies(numbers, values.length);
    checkSidesOfTies(values, members);
    if (!areOdd(times, numbers)) return [];
    const equal = counts.filter((count) => count > 1).reduce((sum, count) => sum + count, 0);
    return [`scores: ${[equal, values.length].map((n) => n.toLocaleString("en-US")).join(" of ")} are equal to another one; check for copies`];
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
    const unused = header.filter((name) => ![columns.score, columns.member, columns.id].includes(name));
    const free = header.map((name, place) => ({ name, place, cells: [] })).filter(({ name }) => unused.includes(name));
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
        for (const { place, cells } of free) cells.push(row[place]);
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
    for (const { name, cells } of free) checkColumn(name, cells, members);
    return {
      raw, values, members, times, kind: used, blank, unused, source: `${file}, columns '${columns.score}' and '${columns.member}'`,
      warnings: [...(told !== null && told !== used ? [doubt] : []), ...tiesOf(values, members, times)],
    };
  }

  return { Refusal, refuse, read, tiesOf };
})();
