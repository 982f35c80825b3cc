"""Canaries with tokens of their own show most, and random characters least, of a small GPT."""

from paperlib.generators.canaries import TEXT_KINDS
from paperlib.reproduction.papers.comparison.canaries import (
    AS_TOKENS,
    RECORDS,
    CanaryConfig,
    canary_power,
)
from tests.refusals import refused

SMALL = {"count": 40, "texts": 30, "public": 40, "repetitions": (4,), "width": 32, "seed": 1}


def test_new_tokens_show_all_that_so_few_canaries_can_and_random_characters_little():
    power = canary_power(CanaryConfig(**SMALL)).set_index("kind")
    assert power.loc[AS_TOKENS, "auc"] > 0.95
    assert power.loc[AS_TOKENS, "epsilon"] > 0.8 * power.loc[AS_TOKENS, "ceiling"]
    assert power.loc["random", "auc"] < power.loc["tokens", "auc"]
    assert power.loc["random", "epsilon"] < 1 < power.loc[AS_TOKENS, "epsilon"]
    assert {*power.index} == {AS_TOKENS, RECORDS, *TEXT_KINDS}
    assert (power["epsilon"] <= power["ceiling"]).all()


def test_too_few_canaries_are_refused():
    refused("count", CanaryConfig, count=5)
