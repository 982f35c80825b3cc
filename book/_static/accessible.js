/* Names and landmarks that the theme leaves out, for readers who use a screen reader. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const set = (selector, attributes) => {
    for (const node of document.querySelectorAll(selector))
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  };
  // The title of the book stands above the sidebar's own navigation.
  set(".sidebar-primary-item:has(> .navbar-brand)", { role: "navigation", "aria-label": "Home" });
  // A part's name is in its summary; a page with others below it has its link beside the summary.
  for (const summary of document.querySelectorAll(".bd-links .has-children > a + details > summary")) {
    const link = summary.closest(".has-children").querySelector("a");
    summary.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }
  // "Show code" and "Hide code" say more than the label that hides them.
  for (const summary of document.querySelectorAll("details.hide > summary")) summary.removeAttribute("aria-label");
  // Sphinx breaks a long signature with lists that define nothing.
  for (const node of document.querySelectorAll(".sig-paren + dl, .sig-paren + dl > dd")) {
    const line = document.createElement("span");
    line.className = node.matches("dl") ? "sig-lines" : "sig-line";
    line.append(...node.childNodes);
    node.replaceWith(line);
  }
  set(".citation-list > .citation", { role: "listitem" });
});
