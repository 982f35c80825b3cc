"""No result claims in its first sentence what one of its own warnings takes back."""

import re
from dataclasses import replace

import numpy as np
import pytest

from paperlib import bounds
from paperlib.bounds import ErrorCounts
from paperlib.core import MembershipScores

TAKEN_BACK = re.compile(r"answers nothing|is refuted|no lower bound|shows? nothing|cannot refute")
FLAGS = np.repeat([1, 0], 1000)
RNG = np.random.default_rng(0)
# A fifth of the members far above everything else, the rest below the non-members: AUC below one
# half.
BOTH_ENDS = np.r_[
    np.where(RNG.random(1000) < 0.2, 8, -2) + RNG.normal(0, 0.1, 1000), RNG.normal(size=1000)
]
REVERSED = MembershipScores.from_labels(BOTH_ENDS, FLAGS)
LOW, NOISE = RNG.normal(size=500), RNG.normal(size=2000)

RESULTS = {
    "one run": lambda: bounds.audit_one_run(REVERSED),
    "one run, game": lambda: bounds.audit_one_run(REVERSED, design="game"),
    "f-DP": lambda: bounds.audit_f_dp(REVERSED),
    "output set": lambda: bounds.audit_output_set(*REVERSED.split(seed=1)),
    "Clopper-Pearson": lambda: bounds.audit_clopper_pearson(REVERSED),
    "Gaussian DP": lambda: bounds.audit_gaussian_dp(REVERSED, delta=1e-5),
    "Bayesian": lambda: bounds.audit_bayesian(REVERSED),
    "two runs": lambda: bounds.audit_clopper_pearson(ErrorCounts(0, 2, 0, 2)),
    "Epsilon*": lambda: bounds.epsilon_star(3 + LOW, LOW),
    "Epsilon*, empirical": lambda: bounds.epsilon_star(3 + LOW, LOW, method="empirical"),
    "PANORAMIA": lambda: bounds.audit_panoramia(NOISE, BOTH_ENDS, FLAGS),
    "c refuted": lambda: bounds.audit_panoramia(BOTH_ENDS, BOTH_ENDS, FLAGS, known_c=0.1),
    "PANORAMIA, too few": lambda: bounds.audit_panoramia(
        NOISE[:9], NOISE[:9], np.arange(9) < 4, delta=0.5
    ),
    "ranks, all hits": lambda: bounds.audit_ranks(np.ones(50), np.full(50, 2), top=2),
    "ranks, large delta": lambda: bounds.audit_ranks(np.ones(50), np.full(50, 2), delta=0.3),
}


def claims_what_is_taken_back(result):
    first = result.headline + result.claim.partition(". ")[0]
    bound = re.search(r"^ε ≥ (?!0\.000)|any epsilon below (?!0\.000)", first)
    return bool(bound) and any(TAKEN_BACK.search(text) for text in result.warnings)


@pytest.mark.parametrize("make", RESULTS.values(), ids=list(RESULTS))
def test_no_first_sentence_claims_what_a_warning_takes_back(make):
    result = make()
    assert result.warnings or "nothing is learned" in result.claim
    assert not claims_what_is_taken_back(result)


def test_a_bound_beside_its_own_refutation_is_seen():
    known = bounds.audit_panoramia(NOISE, BOTH_ENDS, FLAGS, known_c=0.1)
    refuted = RESULTS["c refuted"]()
    assert claims_what_is_taken_back(replace(known, warnings=refuted.warnings))
