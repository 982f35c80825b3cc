"""`audit` with the coins of pairs: the design forget, from values and from files."""

import numpy as np
import pandas as pd

from paperlib.audits import audit, audit_losses
from paperlib.audits.features import audit_features
from paperlib.core import MembershipScores, toss_coins
from paperlib.core.coins import toss_pairs
from paperlib.words import forgetting as words
from tests.refusals import refused

COINS = toss_pairs(200, seed=5)


def losses(factor: float) -> dict[str, float]:
    """Losses by id, in another order than that of the coins; those of forgotten records are
    multiplied.
    """
    rng = np.random.default_rng(0)
    values: dict[str, float] = {}
    for name in sorted(COINS.ids):
        is_forgotten = COINS.included[COINS.ids.index(name)]
        values[name] = rng.gamma(8) * (factor if is_forgotten else 1)
    return values


def test_the_coins_say_the_design_and_all_doors_give_one_result(tmp_path):
    by_id = losses(0.5)
    found = audit(by_id, kind="losses", coins=COINS)
    assert (found.design, found.headline.design) == ("forget", "forget")
    assert found.headline.epsilon > 1.5
    named = audit_losses(by_id, coins=COINS, design="forget")
    pd.DataFrame({"id": by_id.keys(), "loss": by_id.values()}).to_csv(
        tmp_path / "scores.csv", index=False
    )
    read = audit(tmp_path / "scores.csv", coins=COINS)
    pairs = COINS.scores(by_id, kind="losses")
    arrays = audit(pairs.member, pairs.nonmember, kind="losses", design="forget")
    epsilons = {one.headline.epsilon for one in (found, named, read, arrays)}
    assert len(epsilons) == 1
    assert found.headline.coins == COINS.commitment


def test_the_report_holds_both_directions_the_coins_and_the_utility():
    found = audit(losses(2.0), kind="losses", coins=COINS, utility=(0.8, 0.3))
    known, forced = (row.result for row in found.audits[1:])
    assert known is not None
    assert forced is not None
    assert (known.epsilon, forced.epsilon) == (0, found.headline.epsilon)
    document = found.document()
    values = document.to_dict()
    assert values["design"] == "forget"
    assert values["audits"][0]["result"]["state"] == "forced"
    assert values["audits"][0]["result"]["utility"] == [0.8, 0.3]
    assert words.CONDITION in str(document.verdict)
    assert any("Forget less" in step for step in document.verdict.next_steps)
    assert "after it 0.3" in str(found)
    assert COINS.commitment in " ".join(found.headline.assumptions)


def test_equal_scores_are_no_answer():
    equal = MembershipScores(np.zeros(50), np.zeros(50), higher_means_member=False)
    assert audit(equal, design="forget").refusals


def test_bad_input_is_refused_in_one_line(tmp_path):
    by_id = losses(1.0)
    single = toss_coins(list(COINS.ids), seed=1)
    refused(
        "goes with the coins of pairs", audit, by_id, kind="losses", coins=single, design="forget"
    )
    refused("no other design does", audit, by_id, kind="losses", coins=COINS, design="game")
    refused("guess, unit", audit, by_id, kind="losses", coins=COINS, guess="both")
    refused(
        "belongs to an audit of forgetting",
        audit,
        by_id,
        kind="losses",
        coins=single,
        utility=(1, 1),
    )
    refused("does not say which records are a pair", audit, tmp_path / "x.csv", design="forget")
    values = np.arange(20.0)
    refused(
        "20 forgotten records and 19", audit, values, values[1:], kind="losses", design="forget"
    )
    few = MembershipScores(values, values)
    refused("another number of records", audit, few, coins=COINS)
    refused("design", audit, few, design="forgotten")
    table = pd.DataFrame({"id": by_id.keys(), "a": by_id.values(), "b": by_id.values()})
    refused("which record of each pair", audit_features, table, COINS)
