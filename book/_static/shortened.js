/* On a narrow screen long code and tables show their beginning, and a button that shows the rest. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  if (!window.matchMedia("(max-width: 600px)").matches) return;
  const MOST = 9; // lines or rows that are shown whole; of more only the first few

  function shorten(box, count, things) {
    const button = document.createElement("button");
    const open = () => {
      box.classList.remove("shortened");
      button.remove();
    };
    button.type = "button";
    button.className = "show-all";
    button.textContent = `Show all ${count} ${things}`;
    button.addEventListener("click", () => {
      open();
      box.tabIndex = -1; // where the keyboard goes on, now that the button is gone
      box.focus({ preventScroll: true });
    });
    window.addEventListener("beforeprint", open);
    box.classList.add("shortened");
    box.after(button);
  }

  for (const code of document.querySelectorAll(".bd-article div.highlight > pre")) {
    if (code.closest(".cell_output, .highlight-text")) continue; // a result is read whole
    const lines = code.textContent.trim().split("\n").length;
    if (lines > MOST) shorten(code, lines, "lines");
  }
  for (const table of document.querySelectorAll(".bd-article .pst-scrollable-table-container > table")) {
    const rows = table.tBodies[0]?.rows.length ?? 0;
    if (rows > MOST) shorten(table.parentElement, rows, "rows");
  }
});
