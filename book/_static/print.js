/* On paper nothing is folded away. */
"use strict";

(() => {
  let opened = [];
  window.addEventListener("beforeprint", () => {
    const closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
    opened.push(...closed);
  });
  window.addEventListener("afterprint", () => {
    for (const one of opened) one.open = false;
    opened = [];
  });
})();
