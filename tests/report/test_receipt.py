"""The receipt of a planned audit, as its script and Python read it: whatever was changed is
shown.
"""

import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup

from paperlib.audits import Audits, audit, seal_plan, verify_receipt
from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.guesses import guess_path
from paperlib.core import MembershipScores, toss_coins
from paperlib.words.coins import seed_warnings
from tests.refusals import refused
from tests.report.scripts import run_script

Page = dict[str, dict[str, Any]]


IDS = [f"Jörg <{at}>" for at in range(300)]
COINS = toss_coins(IDS, seed=0)
LOSSES = np.random.default_rng(1).normal(0, 1, 300) - 3 * COINS.included
PLAN = {
    "coins": COINS.commitment,
    "score": "loss",
    "direction": "lower",
    "delta": 1e-5,
    "limit": 3,
    "mechanism": "DP-SGD </script> \n 'noise' 0.8",
    "notes": "ε & more",
}


def audited(**fields: Any) -> tuple[Audits, dict[str, str]]:
    """An audit as planned, and the hashes that were published before."""
    plan = seal_plan(PLAN | fields)
    by_id = dict(zip(IDS, LOSSES if plan.direction == "lower" else -LOSSES, strict=True))
    kind = "losses" if plan.direction == "lower" else "scores"
    audits = audit(by_id, kind=kind, coins=COINS, plan=plan)
    return audits, {"plan": plan.hash, "coins": COINS.commitment}


def read(html: str) -> Page:
    """As the script reads a page."""
    soup = BeautifulSoup(html, "html.parser")

    def texts(name: str) -> dict[str, str]:
        return {one[f"data-{name}"]: one.text.strip() for one in soup.select(f"[data-{name}]")}

    (result,) = (json.loads(one.text) for one in soup.select("#audit-result"))
    (receipt,) = (json.loads(one.text) for one in soup.select("#audit-receipt"))
    printed = {"hashes": texts("hash"), "plan": texts("plan"), "answer": result["epsilon"]}
    printed["epsilon"] = result["audits"][0]["result"]["epsilon"]
    return {
        "receipt": receipt,
        "printed": {**printed, "headline": soup.select_one("[data-headline]").text},
    }


def failures(*pages: Page, published: dict[str, str] | None = None) -> list[str]:
    """What the script says is wrong with each page; empty where nothing is."""
    asked = [[page, published or {}] for page in pages]
    found = run_script("all => all.map(one => Receipt.verify(...one))", asked)
    return [
        "\n".join(one["text"] for one in findings if one["good"] is False) for findings in found
    ]


def failed(page: Page, published: dict[str, str] | None = None) -> str:
    return failures(page, published=published)[0]


@pytest.fixture(scope="module")
def published() -> tuple[str, dict[str, str]]:
    audits, hashes = audited()
    return audits.document().html(), hashes


@pytest.fixture
def page(published) -> Page:
    return read(published[0])


def rehash(page: Page, *names: str) -> None:
    for name in names:
        page["printed"]["hashes"][name] = hashlib.sha256(page["receipt"][name].encode()).hexdigest()


def edit(page: Page, name: str, **changes: Any) -> None:
    content = json.loads(page["receipt"][name]) | changes
    page["receipt"][name] = json.dumps(content, sort_keys=True, separators=(",", ":"))


def test_an_unchanged_receipt_passes_with_and_without_published_hashes(page, published):
    assert failed(page) == failed(page, published[1]) == ""
    assert failed(page, {"plan": f" {published[1]['plan'].upper()}\n"}) == ""
    texts = [one["text"] for one in run_script("all => Receipt.verify(...all)", [page, {}])]
    assert sum("no published hash" in text for text in texts) == 2
    assert any(
        re.search(r"computed again is ε ≥ \d\.\d+ .*the report prints ε ≥", text) for text in texts
    )
    assert "The planned limit is 3: the audit failed." in texts
    assert any(
        "as it was sealed: " in text and "score: loss" in text and "notes: ε & more" in text
        for text in texts
    )
    audits, hashes = audited(
        direction="higher", delta=0, guess="members", confidence=0.5, limit=None
    )
    assert failed(read(audits.document().html()), hashes) == ""


def said(values: Any, ids: list[str] = IDS, **fields: Any) -> tuple[Page, list[str], Audits]:
    """The page of a planned audit of these values, what the script says of it, and the audit."""
    coins = toss_coins(ids, seed=0)
    plan = seal_plan(PLAN | {"coins": coins.commitment} | fields)
    audits = audit(dict(zip(ids, values, strict=True)), kind="losses", coins=coins, plan=plan)
    page = read(audits.document().html())
    return (
        page,
        [one["text"] for one in run_script("all => Receipt.verify(...all)", [page, {}])],
        audits,
    )


@pytest.mark.parametrize("values", [-LOSSES, 0 * LOSSES], ids=["reversed", "all equal"])
def test_a_report_without_an_answer_has_a_receipt_that_says_so(values):
    page, texts, audits = said(values)
    assert failed(page) == ""
    assert texts[-3:] == [
        f"No answer: {audits.warnings[0]}.",
        f"Warning: {seed_warnings(COINS)[0]}.",
        "The planned limit is 3: the audit gives no answer, and fails.",
    ]
    page["printed"]["answer"] = 0.0
    assert failed(page) == "Changed: the scores give no answer, and the report holds 0."
    page["printed"]["headline"] = "ε ≥ 1.000 (δ = 1e-05)"
    assert "Changed: the bound computed again" in failed(page)


def test_what_the_script_cannot_decide_passes_no_limit():
    ends = "Warning: the coins were tossed with the seed 0: whoever knows the seed knows the coins."
    few = IDS[:60]
    turned = np.arange(60) + 99 * toss_coins(few, seed=0).included
    page, texts, audits = said(turned, few, limit=1)
    assert audits.refusals
    assert texts[-3].startswith(
        "No answer: AUC 0.000 is below one half, and only permutations can tell"
    )
    assert texts[-2:] == [ends, "The planned limit is 1: the audit gives no answer, and fails."]
    page["printed"]["answer"] = 0.0
    texts = [one["text"] for one in run_script("all => Receipt.verify(...all)", [page, {}])]
    assert texts[-3].startswith(
        "Not decided here: AUC 0.000 is below one half, and only permutations"
    )
    assert texts[-2:] == [ends, "The planned limit is 1: the audit is not judged here."]
    page, texts, audits = said(np.where(np.arange(300) < 200, 0.0, LOSSES), limit=9)
    assert failed(page) == ""
    assert texts[-3:-1] == [f"Warning: {audits.warnings[0]}.", ends]
    assert "67% of the scores are 0: if they were rounded" in texts[-3]
    assert re.search(
        r"9: the audit gives no answer, as so few examples can show at most epsilon 4\.", texts[-1]
    )


def swapped(page: Page) -> None:
    """The most telling score becomes the least telling one."""
    scores = json.loads(page["receipt"]["scores"])
    scores[int(np.argmin(scores))] = max(scores) + 1
    page["receipt"]["scores"] = json.dumps(scores)


def test_each_change_is_shown(page):
    coins = json.loads(page["receipt"]["coins"])
    plan_hash, coins_hash = (f"Changed: the hash of the {name} is .*" for name in ("plan", "coins"))
    other_coins = f"{coins_hash}\nThe plan names these coins|The plan names other coins"
    flipped = "10"[int(coins["coins"][0])] + coins["coins"][1:]
    changes = {
        "a score": (
            swapped,
            "Changed: the hash of the scores is .*\nChanged: the bound computed again",
        ),
        "a missing score": (
            lambda p: p["receipt"].update(
                scores=json.dumps(json.loads(p["receipt"]["scores"])[:-1])
            ),
            "there is not one score for each coin",
        ),
        "a coin": (lambda p: edit(p, "coins", coins=flipped), other_coins),
        "an id": (lambda p: edit(p, "coins", ids=["other", *coins["ids"][1:]]), other_coins),
        "the salt": (lambda p: edit(p, "coins", salt="0" * 64), other_coins),
        "a number of the plan": (
            lambda p: edit(p, "plan", delta=0.0),
            f"{plan_hash}delta is 0.*bound",
        ),
        "a text of the plan": (
            lambda p: edit(p, "plan", mechanism="none"),
            f"{plan_hash}mechanism is none",
        ),
        "the salt of the plan": (lambda p: edit(p, "plan", salt="0" * 64), plan_hash),
        "a shown field": (
            lambda p: p["printed"]["plan"].update(limit="9"),
            "another plan .*: limit is 3",
        ),
        "a field left out": (
            lambda p: p["printed"]["plan"].pop("notes"),
            "another plan .*: notes is ε",
        ),
        "the printed bound": (
            lambda p: p["printed"].update(
                headline=re.sub(r"ε ≥ \d", "ε ≥ 1", p["printed"]["headline"])
            ),
            "Changed: the bound computed again is .*; the report prints ε ≥ 1",
        ),
        "the bound in the JSON": (lambda p: p["printed"].update(epsilon=1.0), "and holds 1"),
        "no JSON": (lambda p: p["receipt"].update(plan="{"), "this is no JSON"),
        "another version": (lambda p: edit(p, "coins", version=2), "reads version 1"),
    }
    pages = [json.loads(json.dumps(page)) for _ in changes]
    for changed, (change, _) in zip(pages, changes.values(), strict=True):
        change(changed)
    for found, (name, (_, words)) in zip(failures(*pages), changes.items(), strict=True):
        assert re.search(words, found, re.DOTALL), name


def test_changes_with_new_hashes_are_shown_by_what_they_contradict(page):
    changed = json.loads(json.dumps(page))
    swapped(changed)
    rehash(changed, "scores")
    assert failed(changed).startswith("Changed: the bound computed again")
    page["receipt"]["coins"] = toss_coins(IDS, seed=9).text
    rehash(page, "coins")
    assert failed(page).startswith("The plan names other coins")


def test_the_best_of_twenty_plans_is_caught_by_the_one_published_hash(published):
    scores = COINS.scores(dict(zip(IDS, LOSSES, strict=True)), kind="losses")
    plans = [seal_plan(PLAN | {"confidence": 0.5 + at / 50}) for at in range(20)]
    bounds = [
        audit_one_run(scores, delta=1e-5, confidence=plan.confidence).epsilon for plan in plans
    ]
    best = audit(scores, coins=COINS, plan=plans[np.argmax(bounds)])
    page = read(best.document().html())
    assert page["printed"]["epsilon"] > read(published[0])["printed"]["epsilon"]
    assert failed(page, {"coins": COINS.commitment}) == ""  # by itself it looks as any other
    caught = f"The published hash of the plan is another one: here it is {best.plan.hash}."
    assert failed(page, published[1]) == caught
    assert (
        "Only one hash, published before training, excludes that this plan was chosen"
        in published[0]
    )


def test_hashes_are_sha256():
    texts = ["é€" * size for size in (0, 1, 27, 28, 31, 32, 500)]
    shown = run_script("all => all.map(Receipt.sha256)", texts)
    assert shown == [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def test_a_report_without_a_plan_runs_no_script():
    html = audit(dict(zip(IDS, LOSSES, strict=True)), kind="losses", coins=COINS).document().html()
    assert re.findall(r"<script[^>]*>", html) == [
        "<script type='application/json' id='audit-result'>"
    ]


UNSEEN = (
    "<!-- {} -->",
    "<template>{}</template>",
    "<script>`{}`</script>",
    "<noscript>{}</noscript>",
)


def another(html: str, form: str) -> str:
    """A page that shows another number; ``form`` has the true one."""
    (true,) = re.findall("<p [^>]*data-headline>.*?</p>", html)
    html = html.replace(true, re.sub(r"ε ≥ \d", "ε ≥ 0", true))
    return html.replace("<main>", f"<main>{form.format(true)}", 1)


def test_python_computes_a_receipt_again_and_names_what_differs(published, tmp_path):
    path, (html, hashes) = tmp_path / "receipt.html", published
    path.write_text(html, encoding="utf-8")
    assert verify_receipt(path, **hashes).headline.epsilon == audited()[0].headline.epsilon
    assert verify_receipt(path, plan=f" {hashes['plan'].upper()}\n").plan.hash == hashes["plan"]
    refused(
        "coins: expected the published hash, 64", verify_receipt, path, coins="train.coins.json"
    )
    least = repr(float(LOSSES.min()))
    forged = audited(limit=9)[0].document().html()
    last = repr(float(LOSSES[-1]))
    for page, words in (
        (
            html.replace(least, "9.5"),
            "headline: ε ≥ .*, here ε ≥ .*\n  claim: .*\n  the number shown: ε ≥",
        ),
        (html.replace(f",{last}]", "]"), "holds 299 scores for 300 coins"),
        (
            html.replace('\\"limit\\":3.0', '\\"limit\\":9.0'),
            "  plan: .*'limit': 3.0.*, here .*'limit': 9.0",
        ),
        (
            re.sub(r"(coins\\\":\\\"[01]{9})[01]", r"\g<1>2", html),
            "the coins .*bring the coins that were planned",
        ),
        (
            re.sub(r"data-headline>ε ≥ \d", "data-headline>ε ≥ 0", html),
            "\n  the number shown: ε ≥ 0",
        ),
        (html.replace('"headline": "ε ≥ 3', '"headline": "ε ≥ 0'), "headline: ε ≥ 0"),
        (html.replace('"epsilon": 3', '"epsilon": 0'), r"audit:\n  epsilon: 0\.\d+, here 3\.\d+$"),
        (forged, f"the published hash of the plan: {hashes['plan']}, here "),
        (html.replace("audit-receipt", "other"), "holds no receipt"),
        *((another(html, form), "the number shown: ε ≥ 0") for form in UNSEEN),
        (another(html, "<p hidden>{}</p>"), "holds several receipts or numbers"),
        (
            html.replace("<script", "<script id='audit-result'>{}</script><script", 1),
            "several receipts or",
        ),
        (html.replace('"scores":', '"other":'), "its receipt cannot be read"),
        (re.sub(r'("scores": ?)"[^"]*"', r'\1"5"', html), "its receipt cannot be read"),
    ):
        path.write_text(page, encoding="utf-8")
        with pytest.raises(ValueError, match=re.compile(words, re.DOTALL)):
            verify_receipt(path, **hashes)


AUDIT = "all => all.map(([scores, members, options]) => OneRun.audit(scores, members, options))"
GUESSES = ("adaptive", "adaptive", "adaptive", "both", "members", "nonmembers")


def drawn(at: int) -> tuple[MembershipScores, list]:
    """Scores of any size, leak, direction of leak, ties and error, and the same as the script takes
    them.
    """
    rng = np.random.default_rng(at)
    size = int(rng.choice([2, 3, 9, 10, 60, 300, 300, 1000, 1000, 3000]))
    member = rng.permutation(np.arange(size) < np.clip(rng.binomial(size, 0.5), 1, size - 1))
    leak, share = rng.choice([-2.0, 0.0, 1.0, 3.0, 3.0, 4.0, 8.0]), rng.choice([0.2, 1.0, 1.0])
    values = rng.normal(0, 1, size) + leak * (member & (rng.random(size) < share))
    digits = int(rng.choice([0, 1, 17]))
    values = np.round(values, digits) if digits < 17 else values
    options = {
        "guess": GUESSES[at % len(GUESSES)],
        "delta": float(rng.choice([0.0, 0.0, 0.0, 1e-9, 1e-5, 1e-4, 1e-3])),
        "confidence": float(rng.choice([0.5, 0.9, 0.95, 0.999])),
    }
    return MembershipScores.from_labels(values, member), [values.tolist(), member.tolist(), options]


def test_the_script_makes_the_guesses_and_gives_the_bounds_of_the_library_on_100_audits():
    cases = [drawn(at) for at in range(100)]
    both = """all => all.map(([scores, members, options]) =>
      [OneRun.audit(scores, members, options), OneRun.guessPath(scores, members, options.guess)])"""
    positive = 0
    shown = run_script(both, [asked for _, asked in cases])
    for (scores, asked), (one, guesses) in zip(cases, shown, strict=True):
        result, path = audit_one_run(scores, **asked[2]), guess_path(scores, asked[2]["guess"])
        assert one["epsilon"] == pytest.approx(result.epsilon, rel=0, abs=1e-9), asked[2]
        assert (one["correct"], one["guesses"]) == (result.correct, result.guesses), asked[2]
        assert (guesses or [[0, 0]]) == np.array([path.guesses, path.correct]).T.tolist(), asked[2]
        positive += result.epsilon > 0
    assert positive > 40


def test_the_script_knows_the_most_that_an_audit_can_show():
    cases = [
        (m, {"delta": d, "confidence": c})
        for m in (2, 9, 400)
        for d in (0, 1e-4)
        for c in (0.5, 0.99)
    ]
    shown = run_script("all => all.map(one => OneRun.ceiling(...one))", cases)
    for (size, options), most in zip(cases, shown, strict=True):
        scores = MembershipScores(np.arange(size // 2), np.arange(size // 2, size))
        assert most == pytest.approx(audit_one_run(scores, **options).ceiling, rel=0, abs=1e-8)


@pytest.mark.parametrize("change", ["guess", "delta", "confidence", "one score"])
def test_another_audit_is_seen(change):
    rng = np.random.default_rng(0)
    member = np.arange(400) % 2 == 0
    values = rng.normal(0, 1, 400) + 2 * member
    options = {"guess": "adaptive", "delta": 0.0, "confidence": 0.95}
    others = {"guess": "both", "delta": 1e-6, "confidence": 0.94}
    other = options | {name: value for name, value in others.items() if name == change}
    result = audit_one_run(MembershipScores.from_labels(values, member), **options)
    if change == "one score":
        values[np.argmax(values)] = values.min() - 1
    (one,) = run_script(AUDIT, [[values.tolist(), member.tolist(), other]])
    assert abs(one["epsilon"] - result.epsilon) > 1e-6
