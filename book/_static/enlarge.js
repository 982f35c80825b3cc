/* A figure fills the screen when it is tapped, clicked or chosen with Enter. The extensions of
   Sphinx that were tried for it bring jQuery, and do not fit a phone. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const dialog = document.createElement("dialog");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Enlarged figure");
  dialog.addEventListener("click", () => dialog.close());

  function open(image) {
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close";
    const copy = document.createElement("img");
    Object.assign(copy, { src: image.currentSrc || image.src, alt: image.alt });
    copy.classList.toggle("themed", Boolean(image.closest("figure.themed")));
    dialog.replaceChildren(close, copy);
    dialog.showModal();
  }

  for (const image of document.querySelectorAll(".bd-article figure img")) {
    if (image.closest("a, button")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.setAttribute("aria-label", `Enlarge: ${image.alt}`);
    image.replaceWith(button);
    button.append(image);
    button.addEventListener("click", () => open(image));
  }
  document.body.append(dialog);
});
