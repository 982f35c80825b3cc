"""The one-run audit of a receipt, in JavaScript, is that of the library."""

import numpy as np
import pytest

from paperlib.bounds import audit_one_run
from paperlib.bounds.one_run.guesses import guess_path
from paperlib.core import MembershipScores
from tests.report.scripts import run_script

AUDIT = "all => all.map(([scores, members, options]) => OneRun.audit(scores, members, options))"
GUESSES = ("adaptive", "adaptive", "adaptive", "both", "members", "nonmembers")


def drawn(at: int) -> tuple[MembershipScores, list]:
    """Scores of any size, leak, direction of leak, ties and error, and the same as the script takes them."""
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
    cases = [(m, {"delta": d, "confidence": c}) for m in (2, 9, 400) for d in (0, 1e-4) for c in (0.5, 0.99)]
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
