/* On a narrow screen long code and tables show their beginning, and a long page its headings; a touch shows all. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const article = document.querySelector(".bd-article");
  if (!article || !window.matchMedia("(max-width: 600px)").matches) return;
  const MOST = 9; // lines or rows that are shown whole; of more only the first few
  const SENTENCE = 16; // characters; a longer cell holds words, which nobody reads by scrolling sideways
  const LONG = 10; // screens, before figures are loaded and formulas set; a longer page shows its headings first

  function button(label, open, box) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "show-all";
    made.textContent = label;
    const show = () => {
      open();
      made.remove();
    };
    made.addEventListener("click", () => {
      show();
      box.tabIndex = -1; // where the keyboard goes on, now that the button is gone
      box.focus({ preventScroll: true });
    });
    window.addEventListener("beforeprint", show);
    return made;
  }
  function shorten(box, label) {
    box.classList.add("shortened");
    box.after(button(label, () => box.classList.remove("shortened"), box));
  }

  // A table of words that is wider than the screen: each row below the last, each cell after its column's name.
  function stack(table) {
    const names = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.textContent.trim());
    // Boxes that are no longer laid out as a table would be none to a screen reader either.
    table.setAttribute("role", "table");
    // Formulas are no child of such a table: a caption that holds some stands in front of it, and names it.
    if (table.caption?.querySelector(".math")) {
      const title = document.createElement("div");
      title.className = "stacked-caption";
      title.id = `${table.id}-caption`;
      title.append(...table.caption.childNodes);
      table.caption.remove();
      table.before(title);
      table.setAttribute("aria-labelledby", title.id);
    }
    for (const group of table.querySelectorAll("thead, tbody")) group.setAttribute("role", "rowgroup");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      for (const [place, cell] of [...row.cells].entries()) {
        const heads = cell.closest("thead") !== null;
        cell.setAttribute("role", heads ? "columnheader" : "cell");
        const name = names[place] ?? "";
        if (!heads && name) cell.dataset.column = /[?:]$/.test(name) ? name : `${name}:`;
      }
    }
    table.classList.add("stacked");
  }

  for (const code of article.querySelectorAll("div.highlight > pre")) {
    if (code.closest(".cell_output, .highlight-text")) continue; // a result is read whole
    const lines = code.textContent.trim().split("\n").length;
    if (lines > MOST) shorten(code, `Show all ${lines} lines`);
  }
  for (const table of article.querySelectorAll(".pst-scrollable-table-container > table")) {
    const rows = table.tBodies[0]?.rows.length ?? 0;
    const merged = table.querySelector("[rowspan], [colspan]") !== null;
    const words = [...table.querySelectorAll("th, td")].some((cell) => cell.textContent.trim().length > SENTENCE);
    if (words && !merged && table.scrollWidth > table.parentElement.clientWidth) stack(table);
    if (rows > MOST) shorten(table.parentElement, `Show all ${rows} rows`);
  }
  if (article.offsetHeight <= LONG * window.innerHeight) return;

  let parts = [...article.querySelectorAll(":scope > section > :is(section, dl.py)")];
  if (parts.length < 2) parts = [...article.querySelectorAll(":scope > section > section > section")];
  if (parts.length < 2) return;
  const short = parts[0].offsetHeight <= (LONG / 2) * window.innerHeight;
  const folds = parts.map((part) => {
    const fold = document.createElement("details");
    const line = document.createElement("summary");
    fold.className = "part";
    fold.append(line);
    if (part.matches("dl")) {
      const name = document.createElement("code"); // of a class or function of the reference
      name.textContent = part.querySelector(".descname").textContent;
      line.append(name);
      part.before(fold);
      fold.append(part);
    } else {
      const heading = part.querySelector(":scope > :is(h2, h3)");
      fold.append(...[...part.childNodes].filter((node) => node !== heading));
      line.append(heading);
      part.append(fold);
      fold.open = short && part === parts[0];
    }
    return fold;
  });
  const openAll = () => folds.forEach((fold) => (fold.open = true));
  const first = parts[0].matches("dl") ? folds[0] : parts[0];
  first.before(button(`Open all ${folds.length} parts`, openAll, first));

  function follow() {
    const target = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    for (let box = target; box; box = box.parentElement) if (box.matches("details")) box.open = true;
    target?.querySelector(":scope > details.part")?.setAttribute("open", "");
    target?.scrollIntoView();
  }
  window.addEventListener("hashchange", follow);
  follow();
});
