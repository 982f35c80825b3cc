"""Numbers in the prose of book and notebooks: computed here, printed by a paper, or a setting."""

import json
import re
from collections.abc import Callable
from math import ceil, exp
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from paperlib.audits.language.blind import BLIND_LEVEL
from paperlib.audits.language.marks import UNFAIR_LEVEL
from paperlib.audits.panoramia.results import LIMIT
from paperlib.bounds import epsilon_star_normals
from paperlib.bounds.many_runs.gaussian_dp import gaussian_dp_epsilon
from paperlib.bounds.one_run.fair_coins import game_size
from paperlib.bounds.one_run.tails import sharp_p_value
from paperlib.bounds.panoramia import panoramia_ceiling
from paperlib.bounds.ranks import p_values
from paperlib.core import round_down
from paperlib.core.direction import REFUSED_LEVEL, REVERSED_LEVEL
from paperlib.reproduction.exhibits import paper_table, paper_tables
from paperlib.reproduction.papers.verdict.evidence import rules
from paperlib.reproduction.validity.claimed_levels import EXAMPLES, SIMULATIONS
from paperlib.reproduction.validity.claimed_power import BOUNDS as POWER_BOUNDS
from paperlib.reproduction.validity.claimed_power import PEER
from paperlib.reproduction.validity.coverage import ValidityConfig
from tests.bounds.test_tails import naive_p_value

ROOT = Path(__file__).parents[2]
BOOK = [
    *sorted((ROOT / "book").glob("*.md")),
    *sorted((ROOT / "book" / "papers").glob("*.md")),
    *sorted((ROOT / "book" / "letters").glob("to_*.md")),
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES = {path.name: path for path in [ROOT / "README.md", *BOOK, *NOTEBOOKS]}
NUMBER = re.compile(r"(?<![\w.,^{])(?:\d{1,3}(?:,\d{3})+|\d+\.\d+)(?![\w.]*\d)")
SETTINGS = {"0.01", "0.05", "0.95", "0.001", "0.999", "0.5"}
"""Error levels and the range of rates, named on many pages."""


def prose(page: str) -> str:
    """The text of a page on one line, without code, addresses and the names of sections and
    equations.
    """
    text = PAGES[page].read_text(encoding="utf-8")
    if page.endswith(".ipynb"):
        cells = json.loads(text)["cells"]
        text = "\n\n".join(
            "".join(one["source"]) for one in cells if one["cell_type"] == "markdown"
        )
    text = re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\(\S+?\)", "]", text)
    text = " ".join(re.sub(r"`[^`]*`", "", text).replace("{,}", ",").split())
    return re.sub(
        r"(?:Section|section|Appendix|Proposition|Python|version)s? [A-Z]?\d*\.?\d+", "", text
    )


def members_at_the_ceiling(bound: float, m: int = 10_000) -> int:
    """The smallest number of members, all ranked first, whose ceiling is a bound."""
    return next(r for r in range(m // 2, m) if panoramia_ceiling(m, r) >= bound)


def two_sample_distance(n: int) -> float:
    """The largest distance of two samples of n that a KS test at 5 % does not reject."""
    steps = np.arange(n + 1)
    p_values = np.array([ks_2samp(np.arange(n), np.arange(n) + k - 0.5).pvalue for k in steps])
    return float(steps[p_values > 0.05].max() / n)


NULL = "panoramia-table-03"  # its last term is the null gate

COMPUTED: dict[str, list[tuple[str, Callable[[], str]]]] = {
    "one_run.md": [
        ("of 10,000 examples {} are shown", lambda: f"{game_size(5_000):,}"),
        (r"at $\varepsilon = 2.5$ that is {} times as many", lambda: f"{2 * (1 + exp(2.5)):.0f}"),
        ("one right: {} against", lambda: f"{naive_p_value(1, 2, 1.0, 0.02):.6f}"),
        ("against the attainable {})", lambda: f"{sharp_p_value(1, 2, 1.0, 0.02):.6f}"),
    ],
    "natural_identifiers.md": [
        ("one hit allow {},", lambda: f"{sharp_p_value(1, 2, 1.0, 0.02):.6f}"),
        ("the formula gives {}.", lambda: f"{naive_p_value(1, 2, 1.0, 0.02):.6f}"),
        (r"\min(1, {}/\sigma", lambda: f"{p_values._CONCENTRATION:g}"),
    ],
    "epsilon_star.md": [
        ("$N(3,1)$ gives {},", lambda: f"{epsilon_star_normals(0, 1, 3, 1, delta=1e-5):.6f}"),
        ("$N(0.5,1)$ gives {},", lambda: f"{epsilon_star_normals(0, 1, 0.5, 1, delta=1e-5):.6f}"),
        (
            "$N(0.5,1.2)$ gives {}.",
            lambda: f"{epsilon_star_normals(0, 1, 0.5, 1.2, delta=1e-5):.6f}",
        ),
        ("it lets a distance of {} pass", lambda: f"{two_sample_distance(100):.2f}"),
    ],
    "panoramia_your_data.ipynb": [("over games lies within {} of 0.", lambda: f"{LIMIT:g}")],
    "epsilon_star_fit.ipynb": [
        ("differ by less than about {}", lambda: f"{two_sample_distance(100):.2f}")
    ],
    "epsilon_star_simulation.ipynb": [
        ("from $-{}$ to", lambda: f"{exp(1) / (exp(1) - 1):.2f}"),
        ("to $-{}$: it is close", lambda: f"{exp(2) / (exp(2) - 1):.2f}"),
    ],
    "what_a_number_means.md": [
        ("they speak in at most {} % of audits", lambda: f"{100 * REVERSED_LEVEL:g}"),
        ("refuses at most {} % of sound audits", lambda: f"{100 * REFUSED_LEVEL:g}"),
    ],
    "audit_texts.md": [("at most {} % of audits find", lambda: f"{100 * BLIND_LEVEL:g}")],
    "marks.md": [("are refused in {} % of audits", lambda: f"{100 * UNFAIR_LEVEL:g}")],
    "output_set_gain.ipynb": [("4, 2, 1, 0.5, {}.", lambda: f"{2 / 8:g}")],
    "results.md": [
        ("with an interval within {} nats of 0", lambda: f"{rules()[NULL].terms[-1].at_most:g}")
    ],
    "validity.ipynb": [("interval at {} %", lambda: f"{100 * ValidityConfig().interval:g}")],
    "panoramia.md": [
        (
            "{} at $m = 10,000$, $r = 5,000$",
            lambda: f"{round_down(panoramia_ceiling(10_000, 5_000))}",
        ),
        ("would need {} and", lambda: f"{members_at_the_ceiling(5.98):,}"),
        ("and {} members in the test split", lambda: f"{members_at_the_ceiling(6.02):,}"),
        ("that is $\\gamma \\le {} \\cdot", lambda: f"{0.025 / 20_000 * 1e6:g}"),
    ],
}
"""Page to the places of its numbers, and what they are."""

QUOTED = {
    "natural_identifiers.md": ["50.0"],
    "nid_mia_benchmark.ipynb": ["50.0"],
    "epsilon_star_landscape.ipynb": ["0.3", "32,561"],
    "panoramia.md": ["5.98", "6.02", "3.62"],
    "panoramia_images.ipynb": ["50,000", "10,000", "2.01", "1.12"],
    "panoramia_tabular.ipynb": ["0.062", "0.655"],
    "panoramia_text.ipynb": ["0.22", "1.57", "2.40"],
}
"""Page to numbers that its paper prints."""

CHOSEN = {
    "README.md": ["2,000"],  # simulated examples of tests/project/test_readme.py
    "one_run.md": ["1,500"],  # guess counts of tests/reproduction/validity/test_one_run.py
    "epsilon_star_simulation.ipynb": ["0.1"],  # rates of the rule of Figure 3
    "epsilon_star_landscape.ipynb": [
        "2,760",
        "2,000",
    ],  # rows of randhie; rows of the timed training
}
"""Page to sizes that code or data fix."""


def level_rows() -> str:
    """The rows of the committed table of levels as the page on claimed curves shows them."""
    table = pd.read_csv(ROOT / "book" / "measured" / "estimates" / "claimed_levels.csv")
    lines = []
    for name, sizes in table.groupby("mechanism", sort=False):
        shown = [
            f"{row['refuted']} [{100 * row['low']:.2f}, {100 * row['high']:.2f}]"
            for row in sizes.to_dict("records")
        ]
        lines.append(f"| {' | '.join([str(name), *shown])} |")
    return " ".join(lines)


def power_table() -> pd.DataFrame:
    """The committed table of what the test of a claimed curve shows."""
    return pd.read_csv(ROOT / "book" / "measured" / "estimates" / "claimed_power.csv")


def power_rows() -> str:
    """Its rows as the page on claimed curves shows them."""
    lines: list[str] = []
    for row in power_table().to_dict("records"):
        means = [f"{row[column]:.2f}" for column in (*POWER_BOUNDS, PEER)]
        examples = f"{row['examples']:,}"
        lines.append(f"| {' | '.join([row['leak'], examples, *means])} |")
    return " ".join(lines)


def largest_standard_error() -> float:
    """The largest one of the means in that table, nats."""
    table = power_table()
    return float(table[[name for name in table if "standard error" in str(name)]].max().max())


COMPUTED["whole_curve.md"] = [
    ("{}", power_rows),
    ("at most {} (", lambda: f"{ceil(100 * largest_standard_error()) / 100:.2f}"),
    ("$\\varepsilon = {}$", lambda: f"{float(gaussian_dp_epsilon(np.array([1.0]), 1e-5)[0]):.2f}"),
    ("{}", level_rows),
    ("was audited {} times", lambda: f"{SIMULATIONS:,}"),
    ("| mechanism | {} examples |", lambda: " examples | ".join(f"{m:,}" for m in EXAMPLES)),
]


@pytest.mark.parametrize("page", COMPUTED)
def test_what_a_page_computes_is_right(page):
    text = prose(page)
    for place, value in COMPUTED[page]:
        assert place.format(value()) in text


@pytest.mark.parametrize("page", PAGES)
def test_every_number_in_prose_has_a_source(page):
    known = {number for _, value in COMPUTED.get(page, []) for number in NUMBER.findall(value())}
    known |= SETTINGS | set(QUOTED.get(page, [])) | set(CHOSEN.get(page, []))
    text = prose(page)
    for place, _ in COMPUTED.get(page, []):
        known |= set(NUMBER.findall(place))
    assert sorted(set(NUMBER.findall(text)) - known) == []


@pytest.mark.parametrize("page", QUOTED)
def test_what_a_page_quotes_is_printed(page):
    cells = {
        float(cell)
        for name in paper_tables()
        for cell in paper_table(name, as_printed=True).to_numpy(str).ravel()
        if re.fullmatch(r"-?\d+(\.\d+)?", cell)
    }
    assert [one for one in QUOTED[page] if float(one.replace(",", "")) not in cells] == []


def test_a_number_without_a_source_is_seen(tmp_path, monkeypatch):
    (tmp_path / "a.md").write_text(
        "Ours is 0.37, with `0.38` in code and 12,345 rows (Section 4.2)."
    )
    monkeypatch.setitem(PAGES, "a.md", tmp_path / "a.md")
    assert NUMBER.findall(prose("a.md")) == ["0.37", "12,345"]
