"""The audit report is one file that asks for nothing and describes every image."""

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from paperlib.core import AuditResult, MembershipScores, ScoreAudit
from paperlib.report import audit_report
from paperlib.report.audit_figures import describe_roc, roc_figure, score_histogram


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(AuditResult):
    epsilon: float = 1.23456

    @property
    def headline(self) -> str:
        return "epsilon >= 1.234 <script>"

    @property
    def curve(self) -> pd.DataFrame:
        return pd.DataFrame({"guesses": [1, 10, 100], "bound": [0.0, 1.23456, 0.5]})


def item(**parts: Any) -> ScoreAudit:
    given = {"title": "Main", "kind": "lower bound", "purpose": "Says something.", "result": None}
    return ScoreAudit(**{**given, **parts})


class Page(HTMLParser):
    """Collects what a browser would fetch, images and open tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.addresses += [values[name] or "" for name in ("src", "href") if name in values]
        if tag == "img":
            self.images.append(values)


def scores() -> MembershipScores:
    rng = np.random.default_rng(0)
    return MembershipScores(rng.normal(1, 1, 300), rng.normal(0, 1, 310))


@pytest.fixture(scope="module")
def text() -> str:
    result = Result(claim="The claim & more.", assumptions=("fair coins",), warnings=("mind <this>",))
    items = [item(result=result), item(title="Other", refused="too few <scores>")]
    return audit_report(
        scores(), items, title="Audit of a<b.csv", facts={"SHA-256": "abc", "Command": "x > y"}
    )


def test_the_page_asks_for_nothing(text: str) -> None:
    page = Page(text)
    assert all(address.startswith("data:") for address in page.addresses)
    assert "http" not in text.replace("http://www.w3.org", "")
    assert "script" not in page.tags


def test_every_image_is_described(text: str) -> None:
    images = Page(text).images
    assert len(images) == 3
    assert all(len(image["alt"] or "") > 40 for image in images)


def test_numbers_claims_assumptions_warnings_and_facts_are_there(text: str) -> None:
    for words in (
        "epsilon &gt;= 1.234 &lt;script&gt;",
        "The claim &amp; more.",
        "fair coins",
        "mind &lt;this&gt;",
        "Not possible: too few &lt;scores&gt;",
        "Audit of a&lt;b.csv",
        "x &gt; y",
        "300 members, 310 non-members",
        "prefers-color-scheme: dark",
        "highest, 1.234, at 10 guesses",
    ):
        assert words in text


def test_an_audit_is_needed() -> None:
    with pytest.raises(ValueError, match="expected at least one"):
        audit_report(scores(), [], title="a", facts={})


def test_a_thinned_roc_curve_stays_on_the_full_one() -> None:
    rng = np.random.default_rng(0)
    big = MembershipScores(rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000))
    fig, data = roc_figure(big)
    fpr, tpr, _ = big.roc()
    assert len(data) <= 600
    assert (data.iloc[[0, -1]].to_numpy() == [[0, 0], [1, 1]]).all()
    full = set(zip(fpr, tpr, strict=True))
    assert set(zip(data["false_positive_rate"], data["true_positive_rate"], strict=True)) <= full
    at_one_percent = tpr[fpr <= 0.01].max()
    assert abs(float(describe_roc(data, 0.5).split(", ")[1].split()[0]) - at_one_percent) < 0.01
    plt.close(fig)


def test_histogram_shares_sum_to_one_per_class() -> None:
    fig, data = score_histogram(scores())
    assert data["member"].sum() == pytest.approx(1)
    assert data["nonmember"].sum() == pytest.approx(1)
    plt.close(fig)


def test_constant_scores_can_be_drawn() -> None:
    same = MembershipScores([1.0, 1.0], [1.0])
    assert "<figure>" in audit_report(same, [item(refused="no signal")], title="a", facts={})
