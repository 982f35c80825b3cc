"""Faults of DP-SGD are found by the checks that the table names, and sound loops pass all of
them.
"""

import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch

from paperlib import assert_private, audit_dp_training
from paperlib.audits.dp_training.runs import outliers
from paperlib.reproduction.validity import dp_faults
from paperlib.reproduction.validity.dp_faults import (
    FAULTS,
    SOUND,
    TWINS,
    _losses,
    made_up_records,
    train_with_fault,
)
from tests.refusals import refused
from tests.reproduction.validity.coverage import assert_rate_at_most

STATED = {"clipping_norm": 1.0, "noise_multiplier": 1.0, "sampling_rate": 0.25, "steps": 32}
CANARIES = outliers(made_up_records())[
    2:4
]  # fewer than by default, for speed; one stops training early
NULL = (torch.zeros(8), torch.tensor(-100))


def audit(fault, **options):
    train = partial(train_with_fault, fault=fault)
    return audit_dp_training(train, made_up_records(), **STATED, seeds=2, **options)


def test_gradients_of_each_record_are_those_of_torch():
    weights = [torch.randn(size, requires_grad=True) for size in ((8, 8), (8, 8), (2, 8))]
    x, y = torch.randn(5, 8), torch.tensor([0, 1, -100, 1, 0])
    losses, rows = _losses(weights, x, y)
    for record, loss in enumerate(losses):
        expected = torch.autograd.grad(loss, weights, retain_graph=True)
        for row, gradient in zip(rows, expected, strict=True):
            torch.testing.assert_close(row[record], gradient.flatten())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_check(fault):
    found = audit(fault, null=NULL, canaries=CANARIES)
    assert not found.passed
    assert found.headline.startswith(f"DP-SGD: not as stated; {FAULTS[fault][0]}: ")
    assert len(found.headline) <= 200


@pytest.mark.parametrize("twin", SOUND)
def test_a_sound_training_passes_every_check(twin):
    fewer = {"canaries": CANARIES} if twin else {}  # the plain training takes those by default
    found = audit(twin, null=NULL, **fewer)
    assert found.passed
    assert "0 of 9 checks found a fault" in found.claim
    # Layers that are clipped apart reach the norm of all only where each of them is clipped.
    unreached = any("no canary reached" in check.finding for check in found.checks)
    assert unreached == (twin == "layers clipped apart")
    assert not found.warnings


def test_every_fault_has_a_twin_of_its_own():
    assert len(set(TWINS.values())) == len(FAULTS)
    assert set(TWINS) == set(FAULTS)
    assert not set(SOUND) & set(FAULTS)


def test_a_training_that_skips_empty_batches_passes():
    stated = STATED | {"sampling_rate": 0.1, "steps": 24}
    loop = partial(train_with_fault, fault="empty batches skipped", sampling_rate=0.1, steps=24)
    found = audit_dp_training(loop, made_up_records(16), **stated, seeds=1, canaries=CANARIES)
    assert found.passed
    assert "24 steps, 24 stated" not in found.checks[0].finding


def test_records_clipped_together_are_seen_also_where_none_is_added():
    found = audit("accumulated before clipping", canaries=CANARIES)
    assert [check.name for check in found.checks if not check.passed] == ["other records"]


def test_a_clipping_norm_a_tenth_too_large_is_seen_also_without_a_record_of_no_gradient():
    loop = partial(train_with_fault, clipping_norm=1.1)
    stated = STATED | {"noise_multiplier": 1.1}
    found = audit_dp_training(loop, made_up_records(), **stated, seeds=1, canaries=CANARIES)
    assert [check.name for check in found.checks if not check.passed] == ["clipping"]
    low = audit_dp_training(
        partial(loop, clipping_norm=0.5), made_up_records(), **STATED, seeds=1, canaries=CANARIES
    )
    assert any("no canary reached the clipping norm" in check.finding for check in low.checks)
    stated = STATED | {"clipping_norm": 1.1}
    assert audit_dp_training(loop, made_up_records(), **stated, seeds=1, canaries=CANARIES).passed


# A mechanism without a network: the sum of clipped rows and noise, as a user without torch would
# return it.


def release(data, seed, noise=1.0, again=slice(None), sign=1):
    rng = np.random.default_rng(seed)
    batches = rng.random((16, len(data))) < 0.25
    drawn = rng.normal(size=(16, data.shape[1]))
    rows = data / np.maximum(1, np.linalg.norm(data, axis=1, keepdims=True))
    return batches @ rows + noise * sign * drawn[again]


STEP = np.arange(16)
AGAIN = {
    "difference of steps 1": {"again": STEP // 2},
    "sum of steps 1": {"again": STEP // 2, "sign": (-1) ** STEP[:, None]},
    "difference of steps 8": {"again": STEP % 8},
}


@pytest.mark.parametrize("found", AGAIN)
def test_noise_that_comes_again_in_another_step_is_found(found):
    data = np.random.default_rng(0).normal(size=(16, 24)) * 0.02
    audited = audit_dp_training(
        partial(release, **AGAIN[found]), data, **STATED | {"steps": 16, "divisor": 1}
    )
    assert (
        f"not as stated; noise of different steps: the {found} apart in parameter 1 has"
        in audited.headline
    )


def test_one_seed_for_the_noise_of_each_parameter_is_found_whatever_their_widths(monkeypatch):
    widths = (8, 9, 7, 6, 2)
    sizes = [(after, before) for before, after in pairwise(widths)]

    def same(total, *_options):
        drawn = torch.randn(total.shape)
        return torch.cat([drawn[: after * before] for after, before in sizes])

    monkeypatch.setattr(dp_faults, "_WIDTHS", widths)
    monkeypatch.setattr(dp_faults, "_SIZES", sizes)
    monkeypatch.setattr(dp_faults, "_noise", same)
    assert (
        "noise of different parameters: the difference of parameters"
        in audit("", canaries=CANARIES).headline
    )


def alarm(offset, noise=1.0, confidence=0.8):
    rng = np.random.default_rng(offset)
    data = rng.normal(size=(16, 24)) * 0.02
    stated = STATED | {"steps": 16, "divisor": 1, "seeds": 2, "confidence": confidence}
    return not audit_dp_training(
        lambda data, seed: release(data, [seed, offset], noise), data, **stated
    ).passed


def test_a_sound_mechanism_is_reported_as_often_as_is_said_at_most():
    assert_rate_at_most(0.2, sum(alarm(offset) for offset in range(150)), 150)
    with pytest.raises(AssertionError, match="allows"):
        assert_rate_at_most(0.2, sum(alarm(offset, noise=0.93) for offset in range(150)), 150)


def told_apart(noise, trainings, offset=0, confidence=0.999):
    data = np.random.default_rng(offset).normal(size=(16, 24)) * 0.02
    stated = STATED | {
        "steps": 16,
        "divisor": 1,
        "seeds": 1,
        "trainings": trainings,
        "confidence": confidence,
    }
    found = audit_dp_training(
        lambda data, seed: release(data, [seed, offset], noise),
        data,
        **stated,
        canaries=list(np.eye(24)[:2] * 5),
        null=np.zeros(24),
    )
    return not found.checks[-1].passed


def test_trainings_with_too_little_noise_are_told_apart_too_well():
    assert told_apart(1 / 16, trainings=40)
    assert not told_apart(1, trainings=40)
    alarms = sum(told_apart(1, trainings=20, offset=offset, confidence=0.4) for offset in range(40))
    assert_rate_at_most(0.1, alarms, 40)  # a seventh of what all checks share


def test_bad_input_is_refused_by_a_line_that_says_what_to_do():
    data = np.eye(16, 24)
    given = {"train": release, "data": data, **STATED, "steps": 16, "divisor": 1, "seeds": 1}
    pairs = torch.utils.data.TensorDataset(torch.tensor(data), torch.arange(16))
    for changed, message in (
        ({"data": (data, data[:5])}, r"data: expected a tuple of arrays .*got lengths \[16, 5\]"),
        (
            {"data": pairs},
            r"got TensorDataset; stack records, or give \.tensors of a TensorDataset",
        ),
        ({"data": pd.DataFrame(data)}, r"got DataFrame; .* \.to_numpy\(\) of a DataFrame"),
        ({"data": list(zip(data, range(16), strict=True))}, "got list; stack records"),
        ({"data": (data, list(range(16)))}, "got ndarray, list; stack records"),
        ({"noise_multiplier": 0}, "noise_multiplier: expected a number in"),
        ({"trainings": 50}, "trainings: expected 0, or 20 or more and a record null="),
        ({"canaries": data[:1]}, "canaries: expected 2 or more"),
        ({"canaries": data[[0, 0]]}, "canaries: they change no step"),
        ({"train": lambda data, seed: None}, "train: no torch optimizer made a step"),
        ({"train": lambda data, seed: release(data, 0)}, "train: two seeds give the same training"),
        (
            {"train": lambda data, seed: release(data, None)},
            "two trainings of the same data and seed differ",
        ),
        (
            {"train": lambda data, seed: release(data, seed) * np.inf},
            "gradients that are not finite",
        ),
    ):
        refused(message, audit_dp_training, **given | changed)


# Opacus.


def opacus_loop(data, seed, poisson_sampling=True):
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    loader = DataLoader(TensorDataset(*data), batch_size=16, shuffle=True)
    private, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.Adam(model.parameters()),
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=poisson_sampling,
    )
    for _ in range(8):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(private(x), y).backward()
            optimizer.step()


def test_a_loop_with_opacus_is_private_with_poisson_sampling_only():
    options = {"epsilon": 11, "seeds": 2, "canaries": CANARIES, **STATED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Opacus: its noise is not that of a secure generator
        assert assert_private(opacus_loop, made_up_records(), **options).passed
        loop = partial(opacus_loop, poisson_sampling=False)
        with pytest.raises(
            AssertionError, match="not as stated; Poisson sampling: a record is in exactly"
        ):
            assert_private(loop, made_up_records(), **options)


def test_the_epsilon_of_the_real_training_is_checked_before_a_small_copy():
    options = {"accounted": (0.01, 1000), "seeds": 1, "canaries": CANARIES, **STATED}
    with pytest.raises(
        AssertionError, match=r"sampling rate 0\.01 and 1000 steps give epsilon 1\.83"
    ):
        assert_private(train_with_fault, made_up_records(), epsilon=1, **options)
    small = assert_private(train_with_fault, made_up_records(), epsilon=2, **options)
    assert small.to_dict()["checks"][0]["name"] == "number of steps"
