"""Speed of bounds, of auditing a file and of training: ``make bench``. References run beside
them.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import betaincinv
from scipy.stats import norm

from paperlib import bounds
from paperlib.audits import audit_features, audit_scores
from paperlib.bounds.ranks.p_values import rank_success_probability
from paperlib.io import read_scores
from paperlib.report import audit_report
from paperlib.reproduction.papers.epsilon_star.training_speed import (
    PLAIN,
    PRIVATE,
    SpeedConfig,
    arms,
    measure_throughput,
)
from tests.bounds.test_one_run import gaussian_scores
from tests.bounds.test_output_sets import mixture_scores

SIZES = (1_000, 10_000, 100_000, 1_000_000)


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.benchmark(group="one run")
def test_reference_sort_and_one_betaincinv(benchmark, m):
    """The yardstick: sort m scores and invert m beta tails once."""
    values = np.random.default_rng(0).normal(size=m)
    counts = np.arange(1.0, m + 1)
    hits = np.maximum(np.round(0.7 * counts), 1.0)
    benchmark(lambda: (np.sort(values), betaincinv(hits, counts - hits + 1, 0.05 / m)))


OF_SCORES = {
    f"{search}, delta = {delta:g}": partial(
        bounds.audit_one_run, guess="members", thresholds=search, delta=delta
    )
    for search in ("anytime", "bonferroni", "dyadic")
    for delta in (0.0, 1e-5)
} | {
    "default": bounds.audit_one_run,
    "default, delta = 1e-05": partial(bounds.audit_one_run, delta=1e-5),
    "f-DP, delta = 1e-05": partial(bounds.audit_f_dp, guess="members"),
    "f-DP, any order, delta = 1e-05": bounds.audit_f_dp,
}


@pytest.mark.parametrize("m", SIZES)
@pytest.mark.parametrize("bound", OF_SCORES)
@pytest.mark.benchmark(group="one run")
def test_one_run(benchmark, bound, m):
    if m == SIZES[-1] and "1e-05" in bound and "default" not in bound:
        pytest.skip("takes minutes")
    benchmark(OF_SCORES[bound], gaussian_scores(m))


@pytest.mark.parametrize("m", SIZES[:2])
def test_features(benchmark, m):
    rng = np.random.default_rng(m)
    member, difficulty = rng.integers(0, 2, m), 2 * rng.normal(size=m)
    signals = np.column_stack([rng.normal(size=m) + difficulty + member, difficulty])
    benchmark.pedantic(audit_features, (signals, member), {"design": "played"}, rounds=3)


PLANS = {
    f"{m} examples, delta = {delta:g}": partial(
        bounds.plan_audit, m, delta, attack=gaussian_scores(300)
    )
    for m in SIZES[:2]
    for delta in (0.0, 1e-5)
} | {
    f"epsilon 2, {rate}": partial(bounds.plan_audit, epsilon=2.0, attack=rate)
    for rate in (0.9, 0.76)
}


@pytest.mark.parametrize("plan", PLANS)
def test_plan(benchmark, plan):
    benchmark.pedantic(PLANS[plan], rounds=1)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize("method", ["parametric", "empirical"])
def test_epsilon_star(benchmark, method, confidence, n):
    rng = np.random.default_rng(0)
    losses = rng.gamma(2, 5, n), rng.gamma(3, 5, n)
    result = benchmark(bounds.epsilon_star, *losses, method=method, confidence=confidence)
    assert result.epsilon > 1


@pytest.mark.parametrize("method", ["optimal", "top_bottom", "dp_sniper"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n", SIZES)
def test_output_set(benchmark, n, delta, method):
    parts = (mixture_scores(n // 2, seed) for seed in (0, 1))
    result = benchmark(bounds.audit_output_set, *parts, method=method, delta=delta)
    assert result.epsilon > 0.2


def test_optimal_output_set(benchmark):
    def density(a, b):
        return lambda x: 0.5 * norm.pdf(x - a) + 0.5 * norm.pdf(x - b)

    densities = density(-2, 1), density(-1, 0)
    assert (
        len(benchmark(bounds.optimal_output_set, *densities, m=100, support=(-12, 12)).intervals)
        == 3
    )


@pytest.mark.parametrize(
    "options", [{"search": "union"}, {"search": "anytime"}, {"delta": 1e-8}], ids=str
)
@pytest.mark.parametrize("m", SIZES[:2])
def test_panoramia(benchmark, m, options):
    rng = np.random.default_rng(m)
    flags = rng.integers(0, 2, m)
    baseline = rng.normal(size=m) + 0.5 * flags
    attack = baseline + rng.normal(size=m) + flags
    result = benchmark(bounds.audit_panoramia, baseline, attack, flags, **options)
    assert result.c_plus_epsilon_lb > (0 if "delta" in options else result.c_lb)


@pytest.mark.parametrize(
    "kind", ["mixed sizes", "mixed sizes, delta", "equal sizes, delta", "margins"]
)
@pytest.mark.parametrize("m", SIZES[:3])
def test_ranks(benchmark, m, kind):
    """Ranks, sizes from 2 to 199 and margins of randomized response at epsilon 3."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 200, m)
    ranks = np.where(rng.random(m) < rank_success_probability(sizes, 3.0), 1, 2)
    options = (
        {"delta": 1e-7}
        if "delta" in kind
        else {"margins": rng.random(m)}
        if kind == "margins"
        else {}
    )
    epsilon = benchmark(
        bounds.audit_ranks, ranks, 64 if "equal" in kind else sizes, **options
    ).epsilon
    assert epsilon > 0 if "equal" in kind else 2.5 < epsilon < 3.0


CONFIG = SpeedConfig(models=(1, 4, 16, 32), epochs=1, device="cpu")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize(
    ("task", "arm"),
    [(task, arm) for task in (PLAIN, PRIVATE) for arm in arms(CONFIG, task, "cpu")],
    ids=str,
)
def test_training(benchmark, task, arm):
    benchmark(arms(CONFIG, task, "cpu")[arm])


@pytest.mark.parametrize("device", DEVICES)
def test_stacks_are_faster_than_their_references(device):
    """Far below what is measured when the machine is quiet, so that a busy one does not fail it."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    models = 16 if device == "cpu" else 256
    config = SpeedConfig(models=(models,), examples=1000, epochs=1, repeats=2, device=device)
    table = measure_throughput(config).set_index(["task", "method"])
    column = "speedup_per_core" if device == "cpu" else "speedup"
    assert table.loc[(PLAIN, "ensemble"), column] > (1.5 if device == "cpu" else 20)
    assert table.loc[(PRIVATE, "ensemble"), column] > (4 if device == "cpu" else 50)


def write(folder: Path, rows: int, name: str) -> Path:
    rng = np.random.default_rng(rows)
    member = rng.integers(0, 2, rows)
    frame = pd.DataFrame({"loss": rng.normal(size=rows) - member, "member": member})
    path = folder / name
    if name.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.benchmark(group="read a scores file")
def test_reading(benchmark, tmp_path, rows, name):
    benchmark(read_scores, write(tmp_path, rows, name))


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.benchmark(group="read, audit and report")
def test_everything(benchmark, tmp_path, rows):
    path = write(tmp_path, rows, "a.csv")

    def everything() -> str:
        scores = read_scores(path).scores
        return audit_report(scores, tuple(audit_scores(scores)), title="a", facts={})

    benchmark.pedantic(everything, rounds=3)
