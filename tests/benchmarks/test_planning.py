"""Speed of plans, with the default numbers of simulated audits: ``make bench``."""

import numpy as np
import pytest

from paperlib.bounds import perfect_epsilon, plan_audit
from paperlib.core import MembershipScores


def pilot_of(m):
    rng = np.random.default_rng(m)
    labels = rng.integers(0, 2, m)
    return MembershipScores.from_labels(rng.normal(size=m) + labels, labels)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("m", [1_000, 10_000])
@pytest.mark.benchmark(group="plan of m examples from a pilot of 300")
def test_from_a_pilot(benchmark, m, delta):
    benchmark.pedantic(plan_audit, (m, delta), {"attack": pilot_of(300)}, rounds=1)


@pytest.mark.parametrize("attack", [0.9, 0.76])
@pytest.mark.benchmark(group="examples for epsilon = 2")
def test_examples_for_an_epsilon(benchmark, attack):
    benchmark.pedantic(plan_audit, kwargs={"epsilon": 2.0, "attack": attack}, rounds=1)


@pytest.mark.benchmark(group="ceiling")
def test_ceiling(benchmark):
    benchmark(perfect_epsilon, 10_000, 1e-5)
