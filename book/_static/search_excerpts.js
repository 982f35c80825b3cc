/* On the search page: pages of prose before entries of the reference, and an excerpt below each result. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const BEFORE = 80; // characters of an excerpt before the hit
  const LENGTH = 240;
  const results = document.getElementById("search-results");
  const query = (new URLSearchParams(location.search).get("q") || "").trim().toLowerCase();
  const words = query.split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
  // Sphinx also finds other forms of a word, so its beginning is looked for in the end.
  const wanted = [query, ...words, ...words.filter((word) => word.length > 5).map((word) => word.slice(0, -2))];

  Scorer.score = ([page, , , description, score]) => score + (description || page.startsWith("api/") ? 0 : 100);

  function excerpt(item) {
    const link = item.querySelector("a");
    const page = decodeURI(link.getAttribute("href")).split("#")[0].replace(/\.html$/, "");
    const text = PAGE_TEXTS[page] || "";
    const lower = text.toLowerCase();
    const title = link.textContent.split(" > ").pop().toLowerCase();
    const own = item.querySelector("span") ? lower.indexOf(`${title.split(".").pop()}(`) : lower.indexOf(title);
    const start = link.getAttribute("href").includes("#") ? Math.max(own, 0) : 0;
    const hit = wanted.find((word) => lower.indexOf(word, start) >= 0);
    if (!hit) return null;
    const at = lower.indexOf(hit, start);
    const from = at > BEFORE ? text.indexOf(" ", at - BEFORE) + 1 : 0;
    const line = document.createElement("p");
    line.className = "context";
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + hit.length);
    const first = Math.min(from, at);
    const cut = first + LENGTH < text.length;
    const end = text.slice(at + hit.length, first + LENGTH).replace(cut ? / \S*$/ : "", cut ? " …" : "");
    line.append(first ? "… " : "", text.slice(first, at), mark, end);
    return line;
  }

  function show() {
    if (typeof PAGE_TEXTS === "undefined") return;
    for (const item of results.querySelectorAll("ul.search > li:not([data-excerpt])")) {
      item.dataset.excerpt = "";
      const line = excerpt(item);
      if (line) item.append(line);
    }
  }

  new MutationObserver(show).observe(results, { childList: true, subtree: true });
  const script = document.createElement("script");
  script.src = "_static/page_texts.js";
  script.addEventListener("load", show);
  document.head.append(script);
});
