"""Nothing that is altered in a receipt passes, every honest receipt does, and the form of the book
computes what Python does.
"""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperlib.audits import (
    audit_losses,
    report_words,
    seal_plan,
    verify_receipt,
)
from paperlib.audits.planned.receipt import OtherVersionError, read_receipt
from paperlib.core import toss_coins
from paperlib.core.sealed import sealed_hash, sealed_text
from paperlib.report.audit import figures
from paperlib.report.audit.about import About
from paperlib.report.audit.differences import page_differences
from tests.refusals import refused
from tests.report.altered_receipts import Altered, block_of, inside
from tests.report.drawn_receipts import drawn_audits
from tests.report.scripts import run_script

COINS = toss_coins(60, seed=0)
PLAN = seal_plan({"coins": COINS.commitment, "score": "loss", "direction": "lower", "limit": 3})
LOSSES = np.round(np.random.default_rng(1).normal(0, 1, 60) - 3 * COINS.included, 4)
PUBLISHED = {"plan": PLAN.hash, "coins": COINS.commitment}
EARLIER = Path(__file__).with_name("earlier_receipt.html.gz")
COMPUTE = """all => all.map(page => {
  try {
    const receipt = Receipt.read(page);
    return { ...Receipt.compute(receipt), hashes: receipt.hashes, plan: receipt.plan };
  } catch (error) {
    if (!(error instanceof Receipt.Refusal || error instanceof ReadScores.Refusal)) throw error;
    return { refused: error.message };
  }
})"""


@pytest.fixture(scope="module")
def html() -> str:
    audits = audit_losses(dict(enumerate(LOSSES)), coins=COINS, plan=PLAN)
    return audits.document(title="Audit of <scores> & more").html()


@pytest.fixture(scope="module")
def altered(html) -> dict[str, str]:
    """39 altered copies of a report."""
    return Altered(html).pages()


@pytest.fixture
def page(tmp_path):
    """Write a page, and its path."""

    def written(text: str) -> Path:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return written


@pytest.fixture
def drawn_before(html, monkeypatch):
    """The pictures of the report, which take longest to draw, are taken from it."""
    pictures = re.findall("<img src='([^']+)' alt='([^']+)'><figcaption>([^<]+)<", html)
    images = [figures.Image(address, caption, alt) for address, alt, caption in pictures]
    monkeypatch.setattr(figures, "report_images", lambda *_: images)


@pytest.fixture
def plain_pages(monkeypatch):
    """Reports without pictures and without limits of detection, which take longest."""
    monkeypatch.setattr(figures, "report_images", lambda *_: [])
    monkeypatch.setattr("paperlib.audits.scores.limit_of_detection", lambda *_, **__: None)


def by_python(text: str) -> dict[str, Any]:
    """What Python computes of the receipt of a page, in the form of the script."""
    try:
        receipt = read_receipt(text, "page")
        audits = receipt.audits()
    except ValueError as error:
        return {"refused": str(error)}
    document = audits.document()
    answer, epsilon, ceiling = document.judged(audits.plan.limit)
    limit = audits.plan.limit
    passed = None
    if limit is not None:
        passed = epsilon is not None and epsilon <= limit < ceiling
    return {
        "answer": "none" if epsilon is None else "number",
        "epsilon": epsilon,
        "headline": answer.headline,
        "claim": answer.claim,
        "passed": passed,
        "hashes": {"plan": audits.plan.hash, "coins": audits.coins.commitment},
        "plan": json.loads(audits.plan.text),
    }


def assert_same(computed: dict[str, Any], right: dict[str, Any], name: object) -> str:
    """Script and Python agree on a page; how: "refused", "number", "none" or "unknown"."""
    assert ("refused" in computed) == ("refused" in right), (name, computed, right)
    if "refused" in right:
        return "refused"
    assert (computed["hashes"], computed["plan"]) == (right["hashes"], right["plan"]), name
    if computed["answer"] == "unknown":  # a test with random numbers decides, which only Python has
        assert computed["epsilon"] is computed["limit"]["passed"] is None, name
        return "unknown"
    assert computed["answer"] == right["answer"], name
    assert computed["limit"]["passed"] == right["passed"], name
    if right["answer"] == "number":
        texts = computed["headline"], computed["claim"]
        assert texts == (right["headline"], right["claim"]), name
        assert computed["epsilon"] == pytest.approx(right["epsilon"], rel=0, abs=1e-8), name
    return computed["answer"]


def test_no_altered_page_passes(html, altered, page, drawn_before):
    assert verify_receipt(page(html), **PUBLISHED).headline.epsilon > 2
    passed = []
    for name, text in altered.items():
        assert text != html, name
        try:
            verify_receipt(page(text), **PUBLISHED)
        except OtherVersionError:
            passed.append(name)
        except ValueError:
            continue
        else:
            passed.append(name)
    assert (len(altered), passed) == (39, [])


def test_script_and_python_agree_on_all_altered_pages(altered):
    computed = run_script(COMPUTE, list(altered.values()))
    ways = [
        assert_same(shown, by_python(text), name)
        for shown, (name, text) in zip(computed, altered.items(), strict=True)
    ]
    assert {way: ways.count(way) for way in ways} == {"number": 25, "refused": 14}


@pytest.mark.parametrize("start", range(0, 200, 40))
def test_script_and_python_agree_on_200_honest_receipts_which_all_pass(start, page, plain_pages):
    pages: dict[int, str] = {}
    for at in range(start, start + 40):
        audits = drawn_audits(at)
        about = About(model="</script><!-- \u202e", notes="\x1b[2J")
        title = "<h1>" if at % 2 else "ε ≥ 0: &lt;private&gt;"
        groups = [None if place % 3 else "<i>" for place in range(len(audits.scores))]
        document = audits.document(
            title=title, about=about, facts={"Command": "'\"<>&"}, groups=groups
        )
        pages[at] = document.html()
        checked = verify_receipt(page(pages[at]), plan=audits.plan.hash)
        assert checked.headline.headline == audits.headline.headline
    computed = run_script(COMPUTE, list(pages.values()))
    ways = [
        assert_same(shown, by_python(text), at)
        for shown, (at, text) in zip(computed, pages.items(), strict=True)
    ]
    assert ways.count("number") > 10
    assert ways.count("unknown") < 10
    assert "refused" not in ways


def resealed(html: str, name: str, **changes: Any) -> str:
    """A page whose plan or coins are changed and sealed again, the plan with the hash of its coins;
    None leaves a field out.
    """
    held = json.loads(block_of(html, "receipt"))
    content = {**json.loads(held[name]), **changes}
    kept = {key: value for key, value in content.items() if value != "left out"}
    held[name] = sealed_text(kept)
    if name == "coins":
        plan = json.loads(held["plan"])
        held["plan"] = sealed_text({**plan, "coins": sealed_hash(held["coins"])})
    return html.replace(block_of(html, "receipt"), inside(held))


def with_scores(html: str, text: str) -> str:
    """A page with another text of scores."""
    held = json.loads(block_of(html, "receipt"))
    return html.replace(block_of(html, "receipt"), inside({**held, "scores": text}))


def malformed(html: str) -> dict[str, str]:
    """Pages whose receipt is none that paperlib writes."""
    ids = list(COINS.ids)
    spread = sealed_text(np.repeat(LOSSES[:30], 2).tolist())
    changes: dict[str, dict[str, Any]] = {
        "a second coin of an id": {"ids": [ids[1], *ids[1:]]},
        "an empty id": {"ids": ["", *ids[1:]]},
        "an id that is a number": {"ids": [0, *ids[1:]]},
        "an id without a coin": {"ids": [*ids, "more"]},
        "a third side": {"coins": "2" * 60},
        "one side": {"coins": "1" * 60},
        "coins that are not fair": {"coins": "1" * 59 + "0"},
        "no copies": {"copies": 0},
        "copies that are no number": {"copies": True},
        "records that are a fraction": {"records": 60.0},
        "a negative seed": {"seed": -1},
        "no salt": {"salt": "left out"},
        "another format": {"format": "paperlib"},
        "another version": {"version": 2},
        "a field of its own": {"more": ""},
    }
    pages = {name: resealed(html, "coins", **change) for name, change in changes.items()}
    of_plan: dict[str, dict[str, Any]] = {
        "a plan for a unit": {"unit": "customer"},
        "guesses of a grid": {"guess": "grid"},
        "delta of 1": {"delta": 1.0},
        "delta as text": {"delta": "0.0"},
        "delta as a whole number": {"delta": 0},
        "no confidence": {"confidence": None},
        "a long text": {"notes": "\U0001f600" * 2001},
        "a file in a folder": {"scores": "a/b"},
        "no file": {"scores": "."},
        "no column": {"score": ""},
        "no day": {"sealed": "left out"},
        "an unknown field": {"\x1b[2J": "x"},
        "plan of another version": {"version": 2},
        "plan that is true": {"version": True},
    }
    for name, change in of_plan.items():
        pages[name] = resealed(html, "plan", **change)
    pages["scores as whole numbers"] = with_scores(html, sealed_text([1, *LOSSES[1:].tolist()]))
    pages["scores with spaces"] = with_scores(html, json.dumps(LOSSES.tolist()))
    pages["rows that stand twice"] = with_scores(html, spread)
    pages["no scores"] = with_scores(html, "{}")
    return pages


def test_script_and_python_refuse_the_same_receipts(html):
    pages = malformed(html)
    computed = run_script(COMPUTE, list(pages.values()))
    for shown, (name, text) in zip(computed, pages.items(), strict=True):
        right = by_python(text)
        assert assert_same(shown, right, name) == "refused", name
        assert "\x1b" not in right["refused"], name


def test_numbers_and_texts_are_written_as_python_seals_them():
    rng = np.random.default_rng(0)
    numbers = [
        -0.0,
        0.0,
        1e15,
        1e16,
        123456789012345680.0,
        1e-4,
        1e-5,
        5e-324,
        1.7976931348623157e308,
    ]
    numbers += (rng.normal(0, 1, 500) * 10.0 ** rng.integers(-30, 30, 500)).tolist()
    shown = run_script("all => Receipt.sealedText(all, () => true)", numbers)
    assert shown.replace("[0.0,0.0,", "[-0.0,0.0,", 1) == sealed_text(numbers)  # JSON has no -0.0
    text = {"b\u00e9\x7f\x1f": ['\U0001f600\u2028"\\\n', None, True, 7], "a": "\ud800"}
    held = json.loads(
        run_script("all => JSON.stringify(Receipt.sealedText(all, () => false))", text)
    )
    assert held == sealed_text(text)


def test_a_page_of_an_earlier_version_is_said_to_be_one(page):
    text = gzip.decompress(EARLIER.read_bytes()).decode()
    with pytest.raises(
        OtherVersionError, match=r"does not name .an earlier one, or a changed page.; here"
    ) as error:
        verify_receipt(page(text))
    assert error.value.audits.headline.headline in text
    lied = re.sub(r'"epsilon": 2\.3\d+', '"epsilon": 0.3', text)
    assert lied != text
    with pytest.raises(ValueError, match=r"\n  in the block .*: epsilon is 0.3, here 2\.3"):
        verify_receipt(page(lied))


def test_a_page_that_names_another_version_never_passes_but_if_it_is_whole(html, page, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(report_words, "versions", lambda: "paperlib 0.0.9 (0a1b2c3d4e5f), numpy 1")
        other = audit_losses(dict(enumerate(LOSSES)), coins=COINS, plan=PLAN).document().html()
    assert verify_receipt(page(other)).plan.hash == PLAN.hash
    for name in ("verdict", "true number hidden by CSS"):
        altered = Altered(other).pages()[name]
        with pytest.raises(OtherVersionError, match=r"by paperlib 0\.0\.9 \(\w+\), numpy 1;"):
            verify_receipt(page(altered))
    versions = re.findall(r"paperlib [\w.]+ \(\w+\), matplotlib", html)[0]
    with pytest.raises(OtherVersionError, match="written by a version that it does not name"):
        verify_receipt(page(html.replace(versions, "\u202eall good")))


def test_ends_of_lines_of_mail_pass_and_other_bytes_do_not(html, page, tmp_path, drawn_before):
    assert verify_receipt(page(html.replace("\n", "\r\n"))).plan.hash == PLAN.hash
    with pytest.raises(ValueError, match=r"\n  at the top of the page: the page has “\\ufeff<!DOC"):
        verify_receipt(page("\ufeff" + html))
    latin = page("")
    latin.write_bytes(html.encode() + b"\xff")
    refused("is no UTF-8 text", verify_receipt, latin)
    refused("this is a folder", verify_receipt, tmp_path)


def test_last_digits_of_the_block_for_programs_may_differ_and_no_others(html):
    epsilon = re.findall(r'"epsilon": (2\.\d{12,})', html)[0]
    near = repr(float(epsilon) + 1e-12)
    assert near != epsilon
    assert page_differences(html.replace(epsilon, near), html) == []
    (line,) = page_differences(html.replace(f'"epsilon": {epsilon}', '"epsilon": 2.61'), html)[:1]
    assert "in the block for programs: " in line
    assert ".epsilon is 2.61, and 2.6" in line


def test_a_difference_says_where_it_is(html):
    picture = re.findall("data:image/svg[^']+", html)[1]
    assert page_differences(html.replace(picture, picture[:-8]), html) == [
        "under “Figures”: the page has another image"
    ]
    assert page_differences(html.replace("<h1>", "<h1 onclick='x'>"), html) == [
        "under “Audit of &lt;scores&gt; &amp; more”: the page has “<h1 onclick='x'>Audit of "
        "&lt;scores&gt; &amp; more</h1>”, the report “<h1>Audit of &lt;scores&gt; &amp; more</h1>”"
    ]
    lacks = html.replace("<h2>Figures</h2>\n", "")
    assert page_differences(lacks, html) == ["under “Figures”: the page lacks “<h2>Figures</h2>”"]
    assert page_differences(html + "\n\x1b[2J", html)[0].endswith(r"the page also has “\x1b[2J”")
    assert page_differences("\n" * 2_000_000, html, most=2)[2:] == ["and more places"]


@pytest.mark.usefixtures("plain_pages")
def test_every_option_of_an_audit_is_in_its_receipt(page):
    audits = audit_losses(dict(enumerate(LOSSES)), coins=COINS, plan=PLAN, seed=7)
    order = np.argsort(~COINS.included, kind="stable")
    named = audits.document(ids=np.array(COINS.ids)[order], groups=np.arange(60) % 4)
    assert verify_receipt(page(named.html())).audits[1].result is not None
    refused("other than those of the coins", audits.document, ids=list("ab" * 30))
    texts = named.receipt or {}
    for name, value in (
        ("seed", -1),
        ("named", 1),
        ("groups", [1]),
        ("versions", "\x1b"),
        ("facts", [["a", 1]]),
    ):
        words = json.dumps(
            {**json.loads(texts["report"]), name: value}, sort_keys=True, separators=(",", ":")
        )
        assert report_words.read_words(words) is None, name
    assert report_words.read_words(texts["report"]) is not None


@pytest.mark.usefixtures("plain_pages")
def test_infinite_scores_have_a_receipt_too(page):
    losses = np.where(COINS.included & (LOSSES < -2), -np.inf, LOSSES)
    losses = np.where(~COINS.included & (LOSSES > 1), np.inf, losses)
    assert np.isinf(losses).sum() > 10
    audits = audit_losses(dict(enumerate(losses)), coins=COINS, plan=PLAN)
    html = audits.document().html()
    assert verify_receipt(page(html), **PUBLISHED).headline.epsilon == audits.headline.epsilon
    (shown,) = run_script(COMPUTE, [html])
    assert assert_same(shown, by_python(html), "infinite") == "unknown"
    lied = with_scores(html, sealed_text(["nan"] * 60))
    assert "refused" in by_python(lied)
    assert "refused" in run_script(COMPUTE, [lied])[0]
