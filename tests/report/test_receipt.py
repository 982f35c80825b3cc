"""The receipt of a planned audit, and the bounds of the book's script beside those of Python."""

import hashlib
import re
from typing import Any

import numpy as np
import pytest

from paperlib.audits import audit, seal_plan, verify_receipt
from paperlib.audits.score_results import Audits
from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.guesses import guess_path
from paperlib.core import MembershipScores, toss_coins
from tests.refusals import refused
from tests.report.scripts import run_script

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


@pytest.fixture(scope="module")
def published() -> tuple[str, dict[str, str]]:
    audits, hashes = audited()
    return audits.document().html(), hashes


def test_the_best_of_twenty_plans_is_caught_by_the_one_published_hash(published, tmp_path):
    scores = COINS.scores(dict(zip(IDS, LOSSES, strict=True)), kind="losses")
    plans = [seal_plan(PLAN | {"confidence": 0.5 + at / 50}) for at in range(20)]
    bounds = [
        audit_one_run(scores, delta=1e-5, confidence=plan.confidence).epsilon for plan in plans
    ]
    best = audit(scores, coins=COINS, plan=plans[np.argmax(bounds)])
    assert best.headline.epsilon > audited()[0].headline.epsilon
    html = best.document().html()
    path = tmp_path / "best.html"
    path.write_text(html, encoding="utf-8")
    assert verify_receipt(path, coins=COINS.commitment).plan.hash == best.plan.hash
    with pytest.raises(ValueError, match=f"the published hash of the plan: .*{best.plan.hash}"):
        verify_receipt(path, **published[1])
    compared = run_script(
        "([page, hash]) => Receipt.compared('plan', hash, Receipt.read(page).hashes.plan)",
        [html, published[1]["plan"]],
    )
    assert compared == {
        "same": False,
        "text": "The published hash of the plan is another one.",
    }
    assert (
        "Only one hash, published before training, excludes that this plan was chosen"
        in published[0]
    )


def test_hashes_are_sha256():
    texts = ["é€" * size for size in (0, 1, 27, 28, 31, 32, 500)]
    shown = run_script("all => all.map(Receipt.sha256)", texts)
    assert shown == [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def test_no_report_runs_a_script(published):
    html = audit(dict(zip(IDS, LOSSES, strict=True)), kind="losses", coins=COINS).document().html()
    result, receipt = (
        f"<script type='application/json' id='audit-{name}'>" for name in ("result", "receipt")
    )
    assert re.findall(r"<script[^>]*>", html) == [result]
    assert re.findall(r"<script[^>]*>", published[0]) == [result, receipt]
    assert not re.search("<(?:form|input|button|iframe|link rel='style)|javascript:", published[0])


def test_python_computes_a_receipt_again_and_names_what_differs(published, tmp_path):
    path, (html, hashes) = tmp_path / "receipt.html", published
    path.write_text(html, encoding="utf-8")
    assert verify_receipt(path, **hashes).headline.epsilon == audited()[0].headline.epsilon
    assert verify_receipt(path, plan=f" {hashes['plan'].upper()}\n").plan.hash == hashes["plan"]
    refused(
        "coins: expected the published hash, 64", verify_receipt, path, coins="train.coins.json"
    )
    last = repr(float(LOSSES[-1]))
    for page, words in (
        (html.replace(f",{last}]", "]"), "holds 299 scores for 300 coins"),
        (
            re.sub(r"(coins\\\":\\\"[01]{9})[01]", r"\g<1>2", html),
            "the coins are not as `paperlib coins` seals them",
        ),
        (audited(limit=9)[0].document().html(), "published hash of the plan: .*, here "),
        (html.replace("audit-receipt", "other"), "holds no receipt"),
        (html.replace('"scores":', '"other":'), "its receipt cannot be read"),
        (re.sub(r'("scores": ?)"[^"]*"', r'\1"5"', html), "are not numbers"),
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
