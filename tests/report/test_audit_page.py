"""The audit report is one file that asks for nothing, runs nothing and begins with a verdict."""

import html
import json
import re
from dataclasses import dataclass

import jsonschema
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from scipy.stats import binomtest

from paperlib.audits import audit_scores
from paperlib.core import AuditResult, MembershipScores, ScoreAudit
from paperlib.core.intervals import score_measures
from paperlib.report import audit_report
from paperlib.report.audit.about import About, result_schema
from paperlib.report.audit.figures import describe_roc, roc_figure, score_histogram
from paperlib.words.verdict import plain_verdict


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(AuditResult):
    epsilon: float = 1.23456
    delta: float = 0.0
    confidence: float | None = None
    total: int | None = None
    guesses: int | None = None
    correct: int | None = None
    ceiling: float | None = None
    counts: tuple[int, ...] = (1, 10, 100)

    @property
    def headline(self):
        return "epsilon >= 1.234 <script>"

    @property
    def curve(self):
        return pd.DataFrame(
            {"guesses": self.counts, "bound": [0.0, 1.23456, 0.5][: len(self.counts)]}
        )


def item(**parts):
    given = {"title": "Main", "kind": "lower bound", "purpose": "Says something.", "result": None}
    return ScoreAudit(**{**given, **parts})


REFUSED = [item(refused="r")]
RESULT = Result(claim="c", assumptions=())


def page_of(text):
    return BeautifulSoup(text, "html.parser")


def report(scored, audits, **parts):
    return audit_report(scored, audits, **{"title": "a", "facts": {}, **parts})


def block(page):
    """The machine-readable block."""
    (script,) = page_of(page).select("script")
    return json.loads(script.text)


def text_of(page):
    """What a reader sees, on one line."""
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", shown).split())


RNG = np.random.default_rng(0)
SCORES = MembershipScores(RNG.normal(1, 1, 300), RNG.normal(0, 1, 310))


@pytest.fixture(scope="module")
def audits():
    return audit_scores(SCORES, design="game")


@pytest.fixture(scope="module")
def whole(audits):
    """A page with every section."""
    groups, facts = np.tile(["x", "y"], 305), {"Input": "x"}
    return report(SCORES, tuple(audits), facts=facts, about=About(model="m"), groups=groups)


@pytest.fixture(scope="module")
def text():
    result = Result(
        claim="The claim & more.", assumptions=("fair coins",), warnings=("mind <this>",)
    )
    items = [item(result=result), item(title="Other", refused="too few <scores>")]
    return report(
        SCORES, items, title="Audit of a<b.csv", facts={"SHA-256": "abc", "Command": "x > y"}
    )


def test_the_page_asks_for_nothing_describes_its_images_and_holds_numbers_claims_and_facts(text):
    page = page_of(text)
    addresses = [one[name] for name in ("src", "href") for one in page.select(f"[{name}]")]
    assert all(address.startswith("data:") for address in addresses)
    assert "http" not in text.replace("http://www.w3.org", "")
    assert [one["type"] for one in page.select("script")] == ["application/json"]
    assert "onload" not in text
    assert [len(image["alt"]) > 40 for image in page.select("img")] == [True] * 3
    for words in (
        "epsilon &gt;= 1.234 &lt;script&gt;",
        "The claim &amp; more.",
        "fair coins",
        "mind &lt;this&gt;",
        "Not possible: too few &lt;scores&gt;",
        "Audit of a&lt;b.csv",
        "x &gt; y",
        "not given",
        "300 members, 310 non-members",
        "prefers-color-scheme: dark",
        "highest, 1.234, at 10 guesses",
    ):
        assert words in text


def test_a_histogram_counts_infinite_scores_in_its_first_and_last_bin():
    finite = np.linspace(0.0, 1.0, 11)
    scores = MembershipScores(np.append(finite, np.inf), np.append(finite, [-np.inf, -np.inf]))
    table = score_histogram(scores, bins=10)[1]
    assert np.isfinite(table.to_numpy()).all()
    assert table[["member", "nonmember"]].sum().tolist() == pytest.approx([1, 1])
    assert table["member"].iloc[-1] == pytest.approx(3 / 12)
    assert table["nonmember"].iloc[0] == pytest.approx(3 / 13)


def test_a_thinned_roc_curve_stays_on_the_full_one_with_exact_intervals_and_reports_stay_small():
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
    groups = rng.integers(0, 60, len(big))
    assert len(report(big, REFUSED, ids=np.arange(len(big)), groups=groups)) < 500_000
    _, data = roc_figure(SCORES, confidence=0.9)
    for row in data.iloc[[0, 1, len(data) // 2, -2, -1]].itertuples():
        interval = binomtest(round(row.true_positive_rate * 300), 300).proportion_ci(0.9, "exact")
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    _, shares = score_histogram(SCORES)
    assert shares[["member", "nonmember"]].sum().tolist() == pytest.approx([1, 1])


def test_the_page_goes_from_the_verdict_to_the_details_with_intervals_and_the_ceiling(whole):
    assert [one.text for one in page_of(whole).select("h2")] == [
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
    further = report(SCORES, REFUSED, more=["<section>extra</section>"])
    assert further.index("extra") < further.index("<h2>Figures")
    shown, measures = text_of(whole), score_measures(SCORES)
    rate = measures.rates[1]
    assert f"AUC {measures.auc:.3f} [0." in shown
    assert rate.true_positive_rate is not None
    assert f"TPR at 1 % FPR {rate.true_positive_rate:.3f} [0." in shown
    assert "TPR at 0.1 % FPR – needs 1,000 non-members, there are 310" in shown
    assert re.search(r"Ceiling ε ≤ \d\.\d{3} the most that \d+ audited records could show", shown)


def test_the_condition_stands_right_beside_the_number_and_a_given_verdict_word_by_word(audits):
    verdict, main = plain_verdict(audits.headline, claimed_epsilon=0.01), audits.audits[0]
    shown, headline = text_of(report(SCORES, [main], verdict=verdict)), main.result.headline
    assert main.result.condition
    assert (
        shown.count(headline) == shown.count(f"{headline} Condition: {main.result.condition}.") >= 2
    )
    assert verdict.refuted is True
    for words in (*verdict.sentences, *verdict.next_steps):
        assert words in html.unescape(shown)


def test_a_reversed_score_is_named_first_and_nobody_is_called_exposed():
    page = report(MembershipScores(SCORES.nonmember, SCORES.member), [item(result=RESULT)])
    shown = text_of(page)
    assert "Verdict Not an answer yet" in shown
    assert "right in at least" not in shown
    assert "Not shown while the direction of the score" in shown
    assert "reversed" in block(page)["warnings"][0]
    assert "reversed" not in text_of(report(SCORES, REFUSED))


def test_a_baseline_stands_apart_no_guess_has_no_curve_and_an_audit_is_needed():
    base = item(
        title="Base", kind="baseline", result=Result(claim="c", assumptions=(), epsilon=99.0)
    )
    page = report(SCORES, [item(result=RESULT), base, item(title="Other", result=RESULT)])
    assert page.index(">Other <") < page.index("For comparison only") < page.index(">Base <")
    assert "class='number'" not in page[page.index("<div class='baseline'>") :]
    assert len(page_of(page).select("img")) == 4  # the curve of a baseline is not drawn
    silent = Result(claim="c", assumptions=(), epsilon=0.0, counts=(0,))
    assert len(page_of(report(SCORES, [item(result=silent)])).select("img")) == 2
    assert "<figure>" in report(MembershipScores([1.0, 1.0], [1.0]), REFUSED)
    with pytest.raises(ValueError, match="expected at least one"):
        report(SCORES, [])


def test_no_text_can_end_the_block_which_follows_the_schema_and_what_the_owner_says_is_escaped(
    audits, whole
):
    headline = "</script><script>alert(1)</script><!-- <script>"
    page = report(SCORES, REFUSED, data={"epsilon": 1.5, "headline": headline, "curve": np.ones(2)})
    assert block(page) == {"epsilon": 1.5, "headline": headline, "curve": [1.0, 1.0]}
    assert page.count("</script>") == 1
    about = About(model="<b>", owner="Team", contact="https://example.org/?a=1&b=2 or <script>")
    page = report(SCORES, REFUSED, about=about)
    assert all(
        words in page for words in ("&lt;b&gt;", "<a href='https://example.org/?a=1&amp;b=2'>")
    )
    assert len(page_of(page).select("script")) == 1
    assert all(words in text_of(page) for words in ("Owner Team", "Training date not given"))
    content = block(whole)
    jsonschema.validate(content, result_schema())
    assert content["epsilon"] == audits.headline.epsilon
    assert content["about"]["model"] == "m"
    assert content["provenance"] == {"Input": "x"}
    assert content["verdict"] == plain_verdict(audits.headline).to_dict()
    jsonschema.validate(block(report(SCORES, REFUSED)), result_schema())
