"""The audit report is one file that asks for nothing, runs nothing and begins with a verdict."""

import html
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from paperlib.audits import audit_scores
from paperlib.core import AuditResult, MembershipScores, ScoreAudit, score_measures
from paperlib.report import About, audit_report, plain_verdict, result_schema
from paperlib.report.audit.figures import describe_roc, roc_figure, score_histogram


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
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
    """Collects what a browser would fetch, images, headings, and what stands in scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.scripts: list[dict[str, str | None]] = []
        self.headings: list[str] = []
        self.blocks: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open = tag
        values = dict(attrs)
        if tag == "script":
            self.scripts.append(values)
        self.addresses += [values[name] or "" for name in ("src", "href") if name in values]
        if tag == "img":
            self.images.append(values)

    def handle_endtag(self, tag: str) -> None:
        self.open = ""

    def handle_data(self, data: str) -> None:
        kept = {"h2": self.headings, "script": self.blocks}.get(getattr(self, "open", ""))
        if kept is not None:
            kept.append(data)


def block(page: str) -> dict[str, Any]:
    """The machine-readable block."""
    (text,) = Page(page).blocks
    return json.loads(text)


def text_of(page: str) -> str:
    """What a reader sees, on one line."""
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", shown).split())


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
    assert [one["type"] for one in page.scripts] == ["application/json"]
    assert "onload" not in text


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
        "not given",
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
    _, data = roc_figure(big)
    fpr, tpr, _ = big.roc()
    assert len(data) <= 600
    assert (data.iloc[[0, -1], :2].to_numpy() == [[0, 0], [1, 1]]).all()
    full = set(zip(fpr, tpr, strict=True))
    assert set(zip(data["false_positive_rate"], data["true_positive_rate"], strict=True)) <= full
    at_one_percent = tpr[fpr <= 0.01].max()
    assert abs(float(describe_roc(data, 0.5).split(", ")[1].split()[0]) - at_one_percent) < 0.01


def test_the_band_of_the_curve_is_the_exact_interval_at_each_threshold() -> None:
    _, data = roc_figure(scores(), confidence=0.9)
    for row in data.iloc[[0, 1, len(data) // 2, -2, -1]].itertuples():
        interval = binomtest(round(row.true_positive_rate * 300), 300).proportion_ci(0.9, "exact")
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_no_figure_stays_open() -> None:
    code = """
import sys
from paperlib.core import MembershipScores, ScoreAudit
from paperlib.report import audit_report
audit = ScoreAudit(title="a", kind="lower bound", purpose="b", result=None, refused="c")
audit_report(MembershipScores([1.0], [0.0]), [audit], title="a", facts={})
assert "matplotlib.pyplot" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_histogram_shares_sum_to_one_per_class() -> None:
    _, data = score_histogram(scores())
    assert data["member"].sum() == pytest.approx(1)
    assert data["nonmember"].sum() == pytest.approx(1)


def test_constant_scores_can_be_drawn() -> None:
    same = MembershipScores([1.0, 1.0], [1.0])
    assert "<figure>" in audit_report(same, [item(refused="no signal")], title="a", facts={})


def test_the_page_goes_from_the_verdict_to_the_details() -> None:
    audits = audit_scores(scores(), design="game")
    page = audit_report(
        scores(), tuple(audits), title="a", facts={"Input": "b"}, groups=np.tile(["x", "y"], 305)
    )
    assert Page(page).headings == [
        "Verdict",
        "What to do next",
        "The number",
        "Measures",
        "Most exposed records",
        "Groups",
        "Figures",
        "All audits",
        "About the model",
        "Where these numbers come from",
        "What the main number assumes",
        "Words used here",
    ]


def test_the_condition_stands_right_beside_the_number() -> None:
    main = audit_scores(scores(), design="game").audits[0]
    shown = text_of(audit_report(scores(), [main], title="a", facts={}))
    assert main.result is not None
    assert main.result.condition
    headline = main.result.headline
    assert shown.count(headline) == shown.count(f"{headline} Condition: {main.result.condition}.") >= 2


def test_the_measures_are_shown_with_their_intervals_and_the_ceiling() -> None:
    audits = audit_scores(scores(), design="game")
    shown = text_of(audit_report(scores(), tuple(audits), title="a", facts={}))
    measures = score_measures(scores())
    rate = measures.rates[1]
    assert f"AUC {measures.auc:.3f} [0." in shown
    assert rate.true_positive_rate is not None
    assert f"TPR at 1 % FPR {rate.true_positive_rate:.3f} [0." in shown
    assert "TPR at 0.1 % FPR – needs 1,000 non-members, there are 310" in shown
    assert re.search(r"Ceiling ε ≤ \d\.\d{3} the most that \d+ audited records could show", shown)


def test_a_reversed_score_is_named_first_and_nobody_is_called_exposed() -> None:
    turned = MembershipScores(scores().nonmember, scores().member)
    page = audit_report(turned, [item(result=Result(claim="c", assumptions=()))], title="a", facts={})
    shown = text_of(page)
    assert "Verdict Not an answer yet" in shown
    assert "right up to" not in shown
    assert "Not shown while the direction of the score" in shown
    assert "reversed" in block(page)["warnings"][0]
    assert "reversed" not in text_of(audit_report(scores(), [item(refused="r")], title="a", facts={}))


def test_a_baseline_stands_apart_at_the_end_and_is_never_large() -> None:
    audits = [
        item(result=Result(claim="c", assumptions=())),
        item(title="Base", kind="baseline", result=Result(claim="c", assumptions=(), epsilon=99.0)),
        item(title="Other", result=Result(claim="c", assumptions=())),
    ]
    page = audit_report(scores(), audits, title="a", facts={})
    assert page.index(">Other <") < page.index("For comparison only") < page.index(">Base <")
    apart = page[page.index("<div class='baseline'>") :]
    assert "class='number'" not in apart
    assert len(Page(page).images) == 4  # the curve of a baseline is not drawn


def test_the_block_holds_the_given_data_and_no_text_can_end_it() -> None:
    data = {
        "epsilon": 1.5,
        "headline": "</script><script>alert(1)</script><!-- <script>",
        "curve": np.ones(2),
    }
    page = audit_report(scores(), [item(refused="r")], title="a", facts={}, data=data)
    assert block(page) == {"epsilon": 1.5, "headline": data["headline"], "curve": [1.0, 1.0]}
    assert page.count("</script>") == 1


def test_the_block_follows_the_schema_of_results_when_no_data_are_given() -> None:
    audits = audit_scores(scores(), design="game")
    page = audit_report(scores(), tuple(audits), title="a", facts={"Input": "x"}, about=About(model="m"))
    content = block(page)
    jsonschema.validate(content, result_schema())
    assert content["epsilon"] == audits.headline.epsilon
    assert content["about"]["model"] == "m"
    assert content["provenance"] == {"Input": "x"}
    assert content["verdict"] == plain_verdict(audits.headline).to_dict()
    jsonschema.validate(
        block(audit_report(scores(), [item(refused="r")], title="a", facts={})), result_schema()
    )


def test_a_given_verdict_is_shown_word_by_word() -> None:
    result = audit_scores(scores(), design="game").headline
    verdict = plain_verdict(result, claimed_epsilon=0.01)
    shown = text_of(audit_report(scores(), [item(result=result)], title="a", facts={}, verdict=verdict))
    assert verdict.refuted is True
    for words in (*verdict.sentences, *verdict.next_steps):
        assert words in html.unescape(shown)


def test_what_the_owner_says_is_escaped_and_its_addresses_are_links() -> None:
    about = About(model="<b>", owner="Team", contact="https://example.org/?a=1&b=2 or <script>")
    page = audit_report(scores(), [item(refused="r")], title="a", facts={}, about=about)
    assert "&lt;b&gt;" in page
    assert "<a href='https://example.org/?a=1&amp;b=2'>" in page
    assert len(Page(page).scripts) == 1
    shown = text_of(page)
    assert "Owner Team" in shown
    assert "Training date not given" in shown


def test_further_sections_stand_before_the_figures() -> None:
    page = audit_report(scores(), [item(refused="r")], title="a", facts={}, more=["<section>extra</section>"])
    assert page.index("extra") < page.index("<h2>Figures")


def test_a_search_that_made_no_guess_has_no_curve() -> None:
    class Silent(Result):
        @property
        def curve(self) -> pd.DataFrame:
            return pd.DataFrame({"guesses": [0], "bound": [0.0]})

    silent = Silent(claim="c", assumptions=(), epsilon=0.0)
    page = audit_report(scores(), [item(result=silent)], title="a", facts={})
    assert len(Page(page).images) == 2


def test_a_report_of_many_rows_is_small() -> None:
    rng = np.random.default_rng(0)
    big = MembershipScores(rng.normal(1, 1, 150_000), rng.normal(0, 1, 150_000))
    groups = rng.integers(0, 500, len(big))
    page = audit_report(big, [item(refused="r")], title="a", facts={}, ids=np.arange(len(big)), groups=groups)
    assert len(page) < 500_000
    assert "450 smaller groups are not shown" in page
