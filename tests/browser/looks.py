"""What is wrong with a page as it is shown: measured in the browser, in words; nothing if all is
well.
"""

from pathlib import Path
from typing import Any

AXE = Path(__file__).parent / "axe" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]

# Every text that is shown, against the first background behind it that is not transparent: the
# contrast ratio of WCAG. The rule of axe-core takes eight times as long.
_CONTRAST = """() => {
  const parse = color => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const linear = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const [x, y, z] = [r, g, b].map(linear);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = node => {
    for (; node; node = node.parentElement) {
      const color = parse(getComputedStyle(node).backgroundColor);
      if (color.length === 3 || color[3] > 0.5) return color;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), shown = new Set();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const visible = node.parentElement.checkVisibility(
      { visibilityProperty: true, opacityProperty: true });
    if (node.data.trim() && visible) shown.add(node.parentElement);
  }
  return [...shown].filter(node => node.innerText?.trim()).map(node => {
    const lights = [light(parse(getComputedStyle(node).color)), light(ground(node))];
    const [a, b] = lights.sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), node.innerText.slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5).map(([ratio, text]) => `${ratio.toFixed(1)}: ${text}`);
}"""
_LAYOUT = """codeMayScroll => {
  const article = document.querySelector(".bd-article, .bd-search-container") ?? document.body;
  const edge = article.getBoundingClientRect().right + 1, found = [];
  const scrolls = (node, axis) => /auto|scroll/.test(getComputedStyle(node)[`overflow${axis}`]);
  const named = node => `${node.tagName.toLowerCase()}: ${node.innerText.trim().slice(0, 40)}`;
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  for (const node of article.querySelectorAll("*")) {
    const tall = node.scrollHeight > node.clientHeight + 1 && node.clientHeight;
    if (tall && scrolls(node, "Y") && !(codeMayScroll && node.matches("pre")))
      found.push(`scrolls down inside the page, ${named(node)}`);
    if (node.matches("pre") && node.scrollWidth > node.clientWidth + 1)
      found.push(`is wider than its box, ${named(node)}`);
    if (node.matches("table") && node.getBoundingClientRect().right > edge) {
      let box = node.parentElement;
      while (box !== article && !scrolls(box, "X")) box = box.parentElement;
      if (box === article) found.push(`is wider than the page, ${named(node)}`);
    }
  }
  return found;
}"""
_MARKUP = """() => {
  const article = document.querySelector(".bd-article, .bd-search-container") ?? document.body;
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const role = /\\{(table|figure|numref|py:|doc|ref|cite|eq|math|term|download)/;
  const raw = /```|:::|\\*\\*|:(name|alt|class|label):|\\]\\(/;
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const left_out = "pre, code, script, style, mjx-container, .math, .sig";
    if (node.parentElement.closest(left_out)) continue;
    if (raw.test(node.data) || role.test(node.data)) found.push(node.data.trim().slice(0, 80));
  }
  return found;
}"""
_AXE = """async rules => {
  const without = { "color-contrast": { enabled: false } };
  const settings = { runOnly: rules, rules: without, resultTypes: ["violations"], preload: false };
  const found = await axe.run(document, settings);
  return found.violations.map(
    v => `${v.id} at ${v.nodes.length}: ${v.nodes[0].html.slice(0, 160)}`);
}"""


def faint(tab: Any) -> list[str]:
    """Texts with a contrast below 4.5."""
    return tab.evaluate(_CONTRAST)


def misplaced(tab: Any, *, code_may_scroll: bool = False) -> list[str]:
    """What is cut off, sticks out or hides in a box that scrolls downwards."""
    return tab.evaluate(_LAYOUT, code_may_scroll)


def raw_markup(tab: Any) -> list[str]:
    """Texts outside code that were not rendered."""
    return tab.evaluate(_MARKUP)


def broken_rules(tab: Any) -> list[str]:
    """Rules of axe-core that the page breaks: WCAG 2.1 AA and its best practice of names and
    landmarks.
    """
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(AXE.read_text(encoding="utf-8"))
    return tab.evaluate(_AXE, RULES)
