"""Sound loops in ordinary settings are not accused, and what looks like them and is wrong is."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from paperlib import audit_dp_training
from paperlib.audits.dp_training.runs import outliers
from paperlib.reproduction.validity.dp_faults import made_up_records, train_with_fault
from tests.refusals import refused

STATED = {"clipping_norm": 1.0, "noise_multiplier": 1.0, "sampling_rate": 0.25, "steps": 32}


def records(count=64, width=20):
    x = torch.randn(count, width, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] > 0).long()


def audit(loop, data=None, **options):
    data = records() if data is None else data
    canaries = outliers(data)[:2]  # fewer than by default, for speed
    stated = STATED | {"seeds": 1, "canaries": canaries} | options
    return audit_dp_training(loop, data, **stated)


def wrong(audited):
    return [check.name for check in audited.checks if not check.passed]


def linear_loop(data, seed, heads=(), head_steps=()):
    """DP-SGD of a linear model, with further parameters of these widths, which have a gradient of
    zero without noise in some steps, and no gradient in the others.
    """
    x, y = data
    torch.manual_seed(seed)
    weight = torch.nn.Parameter(torch.zeros(x.shape[1], 2))
    unused = [torch.nn.Parameter(torch.ones(width)) for width in heads]
    optimizer = torch.optim.SGD([*unused, weight], lr=0.1)
    for step in range(32):
        held = torch.rand(len(x)) < 0.25
        error = torch.softmax(x[held] @ weight.detach(), 1) - torch.eye(2)[y[held]]
        norms = x[held].norm(dim=1) * error.norm(dim=1)
        clipped = (x[held] / norms.clamp(min=1)[:, None]).T @ error
        weight.grad = (clipped + torch.randn(clipped.shape)) / (0.25 * len(x))
        for head in unused:
            head.grad = torch.zeros_like(head) if step in head_steps else None
        optimizer.step()


def test_a_parameter_that_the_loss_does_not_use_is_left_out_and_named():
    audited = audit(partial(linear_loop, heads=(40,)))
    assert audited.passed
    (note,) = audited.notes
    assert "Of 2 parameters of the optimizer, no step has a gradient of number 1:" in note
    many = audit(partial(linear_loop, heads=(2,) * 7))
    assert many.passed
    assert "number 1, 2, 3, 4, 5 and 2 others" in many.notes[0]
    assert not audit(linear_loop).notes


def test_a_parameter_with_a_gradient_in_one_step_and_no_noise_in_others_is_a_fault():
    audited = audit(partial(linear_loop, heads=(40,), head_steps=(3,)))
    assert not audited.passed
    assert "the noise of parameter 1 has 0 times" in audited.headline


def test_parameters_keep_the_numbers_that_the_optimizer_gives_them():
    audited = audit(partial(linear_loop, heads=(40,)), noise_multiplier=2.0)
    assert "the noise of parameter 2 has" in audited.headline


def test_a_loop_none_of_whose_parameters_has_a_gradient_is_refused():
    def loop(data, seed):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1)
        for _ in range(32):
            optimizer.step()

    refused("train: no parameter of the optimizer has a gradient in any step", audit, loop)


# A mechanism without a network, as a loop without torch returns it.


def release(data, seed, divisor, noise=1.0):
    rng = np.random.default_rng(seed)
    batches = rng.random((32, len(data))) < 0.25
    rows = data / np.maximum(1, np.linalg.norm(data, axis=1, keepdims=True))
    return (batches @ rows + noise * rng.normal(size=(32, data.shape[1]))) / divisor


NOTE = "The noisy sum is divided by {}, as the loop shows."
FEATURES = np.random.default_rng(0).normal(size=(50, 24))
FAR = {"canaries": list(FEATURES[:2] * 100), "null": np.zeros(24)}


@pytest.mark.parametrize("divisor", [12.5, 12, 1, 50])
def test_a_constant_divisor_that_is_usual_is_no_fault(divisor):
    audited = audit(partial(release, divisor=divisor), FEATURES, **FAR)
    assert audited.passed
    assert not any("no canary reached" in check.finding for check in audited.checks)
    assert audited.notes == (() if divisor == 12.5 else (NOTE.format(divisor),))
    low = audit(partial(release, divisor=divisor, noise=0.5), FEATURES, **FAR)
    assert wrong(low)[0] == "noise"
    assert "clipping" not in wrong(low)


def test_a_divisor_that_is_stated_is_the_one_that_is_checked():
    audited = audit(partial(release, divisor=12), FEATURES, divisor=12.5, **FAR)
    assert wrong(audited) == ["clipping"]
    assert "1.04 clipping norms" in audited.headline
    assert audit(partial(release, divisor=7), FEATURES, divisor=7, **FAR).passed


# Opacus.


def opacus_loop(data, seed, reduction="mean", clipping_norm=1.0, biases=False, loss=cross_entropy):
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    x, y = data
    model = torch.nn.Linear(x.shape[1], 2, bias=biases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Opacus: its noise is not that of a secure generator
        private, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(TensorDataset(x, y), batch_size=16),
            noise_multiplier=1.0,
            max_grad_norm=clipping_norm,
            loss_reduction=reduction,
        )
        for _ in range(4):
            for features, labels in loader:
                optimizer.zero_grad()
                loss(private(features), labels, reduction=reduction).backward()
                optimizer.step()


SEVENTHS = {"sampling_rate": 1 / 7, "steps": 28}  # of Opacus for 100 records in batches of 16


@pytest.mark.parametrize(("reduction", "divisor"), [("mean", 14), ("sum", 1)])
def test_the_divisor_of_opacus_is_asked_for(reduction, divisor):
    data = records(100)
    null = (torch.zeros(20), torch.tensor(0))
    audited = audit(partial(opacus_loop, reduction=reduction), data, null=null, **SEVENTHS)
    assert audited.passed
    assert audited.notes == (NOTE.format(divisor),)
    assert not any("no canary reached" in check.finding for check in audited.checks)
    slightly = partial(opacus_loop, reduction=reduction, clipping_norm=1.01)
    assert wrong(audit(slightly, data, null=null, **SEVENTHS)) == ["clipping"]


IGNORED = (torch.zeros(20), torch.tensor(-100))  # a null that a mean leaves out


def counted(outputs, labels, reduction):
    """A mean over all records, also over those that are ignored."""
    return cross_entropy(outputs, labels, reduction="none").mean()


def test_a_null_that_a_mean_leaves_out_is_no_fault_of_clipping():
    loop = partial(opacus_loop, biases=True)
    audited = audit(loop, records(100), null=IGNORED, **SEVENTHS)
    assert audited.passed
    assert "adding or removing a record" in audited.claim
    assert any("null: it changes the gradients of other records" in note for note in audited.notes)
    assert not audited.warnings
    slightly = partial(loop, clipping_norm=1.01)
    assert wrong(audit(slightly, records(100), null=IGNORED, **SEVENTHS)) == ["clipping"]


def test_a_null_that_the_loss_counts_is_used_as_it_is():
    loop = partial(opacus_loop, biases=True, loss=counted)
    audited = audit(loop, records(100), null=IGNORED, **SEVENTHS)
    assert audited.passed
    assert not any("null" in note for note in audited.notes)


def test_a_null_that_no_clipping_makes_up_for_is_left_out_with_a_word():
    loop = partial(opacus_loop, biases=True, clipping_norm=1000.0)
    stated = SEVENTHS | {"clipping_norm": 1000.0}
    audited = audit(loop, records(100), null=IGNORED, **stated)
    assert audited.passed
    assert "replacing a record" in audited.claim
    (warning,) = audited.warnings
    assert "null: it changes the gradients of other records, so only replacing" in warning
    assert "reduction='none'" in warning


def test_a_null_with_a_gradient_is_left_out_with_a_word():
    null = (torch.zeros(20), torch.tensor(0))  # the biases have one
    audited = audit(partial(opacus_loop, biases=True), records(100), null=null, **SEVENTHS)
    assert audited.passed
    assert "null: it has a gradient of its own, so only replacing" in audited.warnings[0]


def test_trainings_need_a_null_that_can_be_used():
    loop = partial(opacus_loop, biases=True)
    options = {"null": IGNORED, "trainings": 20} | SEVENTHS
    refused(
        "trainings: this null= is of no use for them; give", audit, loop, records(100), **options
    )


# Other records.


def weighted(outputs, labels, reduction):
    return cross_entropy(outputs, labels, weight=torch.tensor([1.0, 3.0]), reduction=reduction)


def normalised(data, seed):
    x, y = data
    opacus_loop(((x - x.mean(0)) / x.std(0), y), seed, biases=True)


def balanced(data, seed):
    counts = torch.bincount(data[1].clamp(min=0), minlength=2)

    def loss(outputs, labels, reduction):
        losses = cross_entropy(outputs, labels, reduction="none")
        return (losses * (len(data[1]) / counts.clamp(min=1))[labels] / 2).mean()

    opacus_loop(data, seed, biases=True, loss=loss)


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (
            partial(opacus_loop, biases=True, loss=weighted),
            "what a record adds depends on its batch, by up to",
        ),
        (normalised, "a record changes the steps without it too, as do statistics of all data"),
        (balanced, "a record changes the steps without it too, as do statistics of all data"),
    ],
)
def test_gradients_that_depend_on_other_records_are_named(loop, words):
    audited = audit(loop, records(100), **SEVENTHS)
    assert wrong(audited)[0] == "other records"
    assert words in audited.headline
    assert len(audited.headline) <= 200


def in_small_batches(data, seed):
    """Poisson batches of Opacus whose gradients are clipped and summed a few records at a time."""
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    torch.manual_seed(seed)
    model = torch.nn.Linear(20, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(TensorDataset(*data), batch_size=16),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        with BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=6, optimizer=optimizer
        ) as small:
            for _ in range(2):
                for features, labels in small:
                    optimizer.zero_grad()
                    cross_entropy(private(features), labels).backward()
                    optimizer.step()


def test_batches_in_small_pieces_are_sound():
    assert audit(in_small_batches, steps=8).passed


# A small piece of a grid of sound loops.


@pytest.mark.parametrize(
    ("sound", "count", "rate", "clipping_norm", "noise"),
    [
        ("", 50, 0.15, 1.0, 1.0),
        ("", 130, 0.1, 0.1, 0.5),
        ("", 33, 0.5, 5.0, 2.0),
        ("Adam", 64, 1.0, 1.0, 1.0),
        ("averaged augmentations", 47, 0.3, 0.3, 1.0),
        ("weights of public classes", 90, 0.2, 0.5, 1.0),
        ("divided by all records", 70, 0.25, 2.0, 0.7),
        ("layers clipped apart", 40, 0.2, 1.0, 1.5),
    ],
)
def test_sound_loops_of_many_sizes_are_not_accused(sound, count, rate, clipping_norm, noise):
    stated = {
        "clipping_norm": clipping_norm,
        "noise_multiplier": noise,
        "sampling_rate": rate,
        "steps": 12,
    }
    loop = partial(train_with_fault, fault=sound, **stated)
    data = made_up_records(count, seed=count)
    options = {"null": (torch.zeros(8), torch.tensor(-100)), "canaries": outliers(data)[:4]}
    assert audit_dp_training(loop, data, **stated, **options, seeds=1).passed
