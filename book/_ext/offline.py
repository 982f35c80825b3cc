"""Make the HTML self-contained: MathJax from sphinx-mathjax-offline, no script from the network."""

import importlib.util
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util.fileutil import copy_asset, copy_asset_file


def mathjax_folder() -> Path:
    """Where the installed MathJax lies; the package's name is not an identifier, so it cannot be
    imported.
    """
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("sphinx-mathjax-offline is not installed: type make")
    return Path(spec.submodule_search_locations[0]) / "static" / "mathjax"


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy one script and its fonts (2 of the package's 24 MB)."""
    out = Path(app.outdir) / "_static" / "mathjax"
    if error or app.builder.format != "html" or out.exists():
        return
    fonts = "output/chtml/fonts"
    (out / fonts).mkdir(parents=True)
    copy_asset_file(str(mathjax_folder() / "tex-chtml-full.js"), str(out))
    copy_asset(str(mathjax_folder() / fonts), str(out / fonts))


def copy_styles(app: Sphinx, error: Exception | None) -> None:
    """Copy our style sheets and scripts even when no page changed, which Sphinx does not."""
    if error or app.builder.format != "html":
        return
    for folder in app.config.html_static_path:
        copy_asset(str(Path(app.srcdir) / folder), str(Path(app.outdir) / "_static"))


ONLY_ON = {
    "one_run.js": ("calculator", "plan_to_receipt", "audit_in_browser"),
    "calculator.js": ("calculator", "plan_to_receipt", "audit_in_browser"),
    "receipt.js": ("plan_to_receipt", "audit_in_browser"),
    "read_scores.js": ("plan_to_receipt", "audit_in_browser"),
    "audit_in_browser.js": ("plan_to_receipt", "audit_in_browser"),
    "search_excerpts.js": ("search",),
}
"""Pages that need a script of ours; Jupyter Book would load them on every page."""


def choose_scripts(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Leave out other pages' scripts, and those for live code: they name a network address."""
    context["script_files"] = [
        script for script in context.get("script_files", []) if _is_needed(script, pagename)
    ]


def _is_needed(script: Any, pagename: str) -> bool:
    """Whether a script is neither for live code nor one of ours for other pages."""
    name = str(script)
    if "thebe" in name or "THEBE_JS_URL" in str(getattr(script, "attributes", "")):
        return False
    of_other_pages = [ours for ours, pages in ONLY_ON.items() if pagename not in pages]
    return not any(ours in name for ours in of_other_pages)


def set_theme(app: Sphinx, config: Config) -> None:
    """One search bar, the reader's own choice of light or dark, and parts of the sidebar that are
    folded, but for the reader's own.

    Set here because `html_theme_options` in _config.yml would replace Jupyter Book's own options.
    """
    config.html_theme_options.setdefault("navbar_persistent", [])
    config.html_theme_options["show_navbar_depth"] = 0  # 1, Jupyter Book's own, opens every part
    config.html_context = {**(config.html_context or {}), "default_mode": "auto"}


def write_in_parallel(app: Sphinx, env: BuildEnvironment) -> None:
    """Two processes write the pages. One reads them: not every extension lets several do so."""
    app.parallel = 3  # with the one that hands the pages out


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.config.mathjax_path = "mathjax/tex-chtml-full.js"
    app.connect("config-inited", set_theme)
    app.connect("env-updated", write_in_parallel)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", copy_styles)
    app.connect("html-page-context", choose_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
