"""Several runs in one bound: against a plain computation, invariances, refusals, reading after each
run.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from paperlib.bounds import audit_one_run, combine_runs
from paperlib.bounds.one_run.combine import ENDS, CombinedResult, rank_scores
from paperlib.bounds.one_run.guesses import GuessPath
from paperlib.bounds.one_run.search import Hypothesis, every_count
from paperlib.core import MembershipScores
from paperlib.reproduction.validity.mechanisms import randomized_response
from tests.refusals import refused


def drawn(runs=4, m=100, gap=1.5, seed=0):
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, (runs, m))
    return [MembershipScores.from_labels(rng.normal(gap * one), one) for one in coins]


def plain_in_turn(runs, planned):
    """The bound of runs without ties, one after another, coin by coin."""
    found = []
    for guess, share in ENDS:
        right, made = [], []
        for run in runs:
            values, labels = run.pooled()
            lowest_first = labels[np.argsort(values)]
            hits, total, step = 0, labels.size, 2 if guess == "both" else 1
            for k in range(1, total // step + 1):
                hits += lowest_first[-k] if guess != "nonmembers" else 0
                hits += not lowest_first[k - 1] if guess != "members" else 0
                right.append(hits)
                made.append(step * k)
                if step * k >= share * total:
                    break
            before = (right[:-k], made[:-k])
            start = (before[0][-1], before[1][-1]) if before[0] else (0, 0)
            right[-k:] = [start[0] + one for one in right[-k:]]
            made[-k:] = [start[1] + one for one in made[-k:]]
        made, right, none = np.array(made), np.array(right), np.zeros(len(made))
        path = GuessPath(made, 0 * made, right, 0 * made, none, none, planned)
        found.append(
            every_count(path, Hypothesis(0.0, 0.05 / len(ENDS)), 1 + (guess == "both")).epsilon
        )
    return max(found)


@pytest.mark.parametrize("gap", [0.5, 1.5, 4.0, None])
def test_runs_in_turn_are_one_sequence_of_coins(gap):
    """Normal scores, and those of randomized response, which shows all examples alike."""
    rng = np.random.default_rng(0)
    runs = drawn(3, gap=gap) if gap else [randomized_response(1.5).draw(rng, 100) for _ in range(3)]
    assert combine_runs(runs, planned=300).epsilon == pytest.approx(
        plain_in_turn(runs, 300), abs=1e-7
    )


def test_runs_at_hand_are_one_audit_of_their_ranks():
    runs = drawn()
    for guess in ("adaptive", "both", "members"):
        found = combine_runs(runs, guess=guess, delta=1e-4)
        assert (
            found.epsilon == audit_one_run(rank_scores(runs), guess=guess, delta=1e-4).epsilon > 0
        )
    alone = combine_runs(runs[:1], guess="both")
    assert alone.epsilon == audit_one_run(runs[0], guess="both").epsilon
    assert np.unique(rank_scores(runs).pooled()[0]).size == 400, "runs of one size take turns"


@pytest.mark.parametrize("planned", [None, 400])
def test_no_scale_is_shared(planned):
    runs = drawn()
    bound = combine_runs(runs, planned=planned).epsilon
    assert bound > 0
    scaled = [
        MembershipScores(np.exp(9 * one.member), np.exp(9 * one.nonmember)) for one in runs[:1]
    ]
    losses = [
        MembershipScores(-one.member, -one.nonmember, higher_means_member=False) for one in runs[1:]
    ]
    assert combine_runs([*scaled, *losses], planned=planned).epsilon == bound


@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_bound_after_each_run_stays_what_it_was_and_never_falls(delta):
    runs = drawn(6)
    bounds = [combine_runs(runs[:k], planned=600, delta=delta).epsilon for k in range(1, 7)]
    assert bounds == sorted(bounds)
    assert 0 < bounds[0] < bounds[-1]
    assert combine_runs(runs, planned=60_000, delta=1e-4).epsilon < bounds[-1]


def test_the_result_says_what_it_speaks_of(few_simulations):
    runs = drawn()
    at_hand, in_turn = combine_runs(runs, delta=1e-5), combine_runs(runs, planned=500, delta=1e-5)
    for result in (at_hand, in_turn):
        assert isinstance(result, CombinedResult)
        assert result.headline.endswith("guesses right, 400 examples of 4 runs)")
        assert "by the procedure that all runs followed" in result.claim
        assert result.condition.endswith("anew in each run; no run was left out")
        assert result.epsilon <= result.ceiling
        assert json.loads(json.dumps(result.to_dict()))["runs"] == [100] * 4
        assert result.curve["bound"].max() == pytest.approx(result.epsilon, abs=1e-6)
    assert any("how many were made did not depend" in text for text in at_hand.assumptions)
    assert any("500 examples at most were planned" in text for text in in_turn.assumptions)
    assert "replacing one example" in combine_runs(runs, design="game").claim


def test_uneven_coins_of_one_run_are_named():
    rng = np.random.default_rng(0)
    uneven = MembershipScores(rng.normal(size=70), rng.normal(size=30))
    other = MembershipScores(rng.normal(size=30), rng.normal(size=70))
    warnings = combine_runs([*drawn(1), uneven, other]).warnings
    assert [text for text in warnings if "members and" in text] == list(warnings[-2:])
    assert warnings[-2].startswith("run 2: 70 members and 30 non-members")


NAMES = [[f"{run}-{at}" for at in range(100)] for run in range(3)]


def test_what_cannot_be_combined_is_refused_in_one_line():
    for options, message in (
        ({"runs": []}, "runs: expected a list"),
        ({"runs": drawn(1)[0]}, "runs: expected a list"),
        ({"runs": [drawn(1)[0], [1.0, 2.0]]}, "run 2: expected MembershipScores"),
        ({"runs": [*drawn(2), drawn(2)[0]]}, "runs 1 and 3 have the same scores"),
        (
            {"runs": [drawn(1)[0], MembershipScores(range(90), range(100, 110))]},
            "run 2: scores: 90 members",
        ),
        (
            {"ids": [NAMES[0], NAMES[1], [*NAMES[2][:-1], "0-7"]]},
            "records in several runs: 1, such as '0-7'",
        ),
        ({"ids": NAMES[:2]}, "ids: expected one name for each example"),
        ({"planned": 299}, "the runs hold 300 examples, more than the 299"),
        ({"planned": 0}, "planned: expected at least 1"),
        ({"planned": float("nan")}, "planned: 1 of 1 values are NaN"),
        ({"planned": 300, "guess": "both"}, "guess: with planned"),
        ({"guess": "best"}, "guess: expected one of"),
        ({"design": "coins"}, "design: expected one of"),
        ({"delta": 1.0}, "delta: expected"),
    ):
        assert message in refused(".", combine_runs, **{"runs": drawn(3), **options})


def with_part_of(one, other, share):
    """The scores of a run with a share of those of another in the place of its own."""
    cut = round(
        share * min(one.member.size, one.nonmember.size, other.member.size, other.nonmember.size)
    )
    sides = ("member", "nonmember")
    return MembershipScores(
        *(np.append(getattr(one, x)[:cut], getattr(other, x)[cut:]) for x in sides)
    )


def test_a_part_of_another_run_is_seen_and_rows_without_a_name_are_no_record():
    one, other = drawn(2)
    refused("some are copies", combine_runs, [one, with_part_of(one, other, 0.9)])
    warnings = combine_runs([one, with_part_of(one, other, 0.2)]).warnings
    assert any("check for copies" in text for text in warnings)
    assert combine_runs([one, other], ids=[["", *NAMES[0][1:]], ["", *NAMES[1][1:]]]).epsilon > 0


def test_one_split_is_suspected_until_the_records_of_two_runs_have_names():
    rng = np.random.default_rng(0)
    runs = [MembershipScores(rng.normal(size=52), rng.normal(size=48)) for _ in range(3)]
    told = [
        any("one split" in one for one in combine_runs(runs, ids=ids).warnings)
        for ids in (None, NAMES)
    ]
    assert told == [True, True], "one split has three runs alike, whatever its names"
    assert not any("one split" in text for text in combine_runs(runs[:2], ids=NAMES[:2]).warnings)
    assert not any("one split" in text for text in combine_runs(drawn()).warnings)
    refused("leave the names out", combine_runs, runs, ids=[NAMES[0]] * 3)
    refused(r"all runs but one$", combine_runs, runs, ids=[NAMES[0]] * 3, design="played")


def test_the_example_of_the_book_runs():
    page = (Path(__file__).parents[2] / "book" / "one_run.md").read_text(encoding="utf-8")
    section = page.partition("## Several runs")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    names = {"combine_runs": combine_runs, "runs": drawn(12, 200)}
    exec(code, names)
    assert names["once"].epsilon > names["so_far"].epsilon > 0


def test_a_run_in_another_unit_or_with_fewer_digits_is_the_same_run():
    first, second = drawn(2)
    values, flags = first.pooled()
    for again in (1.4427 * values, np.exp(values), np.round(values, 3)):
        same = MembershipScores.from_labels(again, flags)
        refused(
            "runs 1 and 3 have .*, or the same in another unit", combine_runs, [first, second, same]
        )
    draws = map(np.random.default_rng, (1, 2))
    separate = [MembershipScores(rng.normal(9, 1, 50), rng.normal(0, 1, 50)) for rng in draws]
    assert combine_runs(separate).epsilon > 3, "of one order by chance: all members come first"


def test_one_reversed_run_is_named_though_the_others_outweigh_it():
    *rest, last = drawn(3, gap=3.0)
    turned = MembershipScores(-last.member, -last.nonmember)
    found = combine_runs([*rest, turned]).warnings
    doubted = [text for text in found if "probably reversed" in text]
    assert doubted == [text for text in found if text.startswith("run 3: AUC")]
    assert len(found) == 1 + sum("all runs have as many" in text for text in found)


def test_a_small_run_counts_once_in_another_unit_or_with_fewer_digits():
    rng = np.random.default_rng(5)
    run = MembershipScores(rng.normal(2, 1, 24), rng.normal(0, 1, 26))
    for unit, digits in ((1000.0, 16), (0.5, 16), (1.0, 6)):
        again = MembershipScores(
            np.round(unit * run.member, digits), np.round(unit * run.nonmember, digits)
        )
        refused("have the same scores", combine_runs, [run, again])
    # The same order of sides, of other scores: few records that are told apart well.
    other = MembershipScores(np.linspace(1, 2, 24), np.linspace(-3, 0, 26))
    apart = MembershipScores(np.sort(rng.random(24)) + 1, -np.sort(rng.random(26)))
    assert combine_runs([other, apart]).epsilon > 0
