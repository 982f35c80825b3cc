"""The attack on images: an image module and a loss module, stacked."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from paperlib.attacks.learned import images as module
from paperlib.attacks.learned.images import ImageStack
from paperlib.attacks.learned.interface import AttackInputs, Labelled, area_under_curve
from paperlib.attacks.learned.stacked_networks import fit_loss_modules, normal_scores
from tests.refusals import refused

FAST = {"epochs": 4, "evaluations": 2, "width": 4, "loss_steps": 40, "hidden": 8}


def game(seed, *, bright=0.0, leak=0.0, n=400, columns=2):
    """Members that are brighter, or have lower losses in the first column."""
    rng = np.random.default_rng(seed)
    member = np.arange(n) < n // 2
    images = np.clip(
        rng.normal(120, 30, (n, 1, 4, 4)) + bright * member[:, None, None, None], 0, 255
    )
    losses = rng.exponential(size=(n, columns))
    losses[:, :1] *= np.exp(-leak * member)[:, None]
    return Labelled(AttackInputs(images.astype(np.uint8), losses), member)


def auc(stack, *, seed=0, **signal):
    train, check, test = (game(seed + at, **signal) for at in (1, 2, 3))
    [fitted] = stack.fit(train, check, seeds=[0])
    return test.value(fitted.scores(test.inputs))


@pytest.mark.parametrize("architecture", ["trees", "cnn"])
def test_both_modules_are_heard(architecture):
    stack = ImageStack(architecture=architecture, **FAST)
    assert auc(stack, bright=20.0) > 0.9, "the image alone"
    assert auc(stack, leak=2.0) > 0.85, "the losses alone"
    assert auc(stack, bright=20.0, columns=0) > 0.9, "without losses"


def test_the_scale_of_losses_does_not_matter_and_nothing_is_found_where_there_is_nothing():
    train, test = game(0, leak=1.0), game(1, leak=1.0)

    def scores(change):
        parts = train.inputs, test.inputs
        taught, shown = (AttackInputs(one.examples, change(one.losses)) for one in parts)
        part = Labelled(taught, train.membership)
        return ImageStack(**FAST).fit(part, part, seeds=[0])[0].scores(shown)

    np.testing.assert_allclose(scores(lambda x: x), scores(lambda x: np.exp(3 * x)), atol=1e-5)
    assert np.mean([auc(ImageStack(**FAST), seed=10 * at) for at in range(5)]) == pytest.approx(
        0.5, abs=0.06
    )


def test_the_image_module_is_trained_once_for_baseline_and_attack(monkeypatch):
    calls, fit = [], module.BoostedTrees.fit
    monkeypatch.setattr(module, "_kept", {})

    def counted(self, *args, **options):
        calls.extend(options["seeds"])
        return fit(self, *args, **options)

    monkeypatch.setattr(module.BoostedTrees, "fit", counted)
    part, other = game(0), game(1)
    for losses in (part.inputs.losses, part.inputs.losses[:, :1]):
        both = Labelled(AttackInputs(part.inputs.examples, losses), part.membership)
        ImageStack(**FAST).fit(both, both, seeds=[0])
    assert calls == [0]
    ImageStack(**FAST).fit(part, part, seeds=[1])
    ImageStack(**FAST).fit(other, part, seeds=[0])
    assert calls == [0, 1, 0], "another seed and other images are trained anew"


def test_only_images_and_whole_counts_are_taken():
    part = game(0)
    floats = Labelled(AttackInputs(part.inputs.examples / 255, part.inputs.losses), part.membership)
    refused("examples: expected uint8 images", ImageStack().fit, floats, floats, seeds=[0])
    refused("loss_steps: expected 1 or more", ImageStack, loss_steps=0)


def test_attacks_trained_together_are_those_trained_alone():
    train, test = game(0, leak=1.0, columns=3), game(1, leak=1.0, columns=3)
    stack, seeds = ImageStack(**FAST), (4, 5, 6)
    alone = [stack.fit(train, test, seeds=[seed])[0].scores(test.inputs) for seed in seeds]
    together = [one.scores(test.inputs) for one in stack.fit(train, test, seeds=seeds)]
    np.testing.assert_allclose(together, alone, atol=1e-3)
    assert np.abs(together[0] - together[1]).max() > 0.01, "seeds differ"


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_kept", {})
    monkeypatch.setattr(module, "_KEPT_PARAMETERS", 5)
    assert [module._keep(str(at), at, size=2) for at in range(4)] == [0, 1, 2, 3]
    assert module._kept == {"2": (2, 2), "3": (3, 2)}
    module._keep("large", 9, size=50)
    assert module._kept == {"large": (9, 50)}


def test_both_modules_stop_by_the_criterion():
    train, check = game(0, bright=4.0, leak=0.3), game(1, bright=4.0, leak=0.3)
    asked = []

    def last(scores, _):
        asked.append(scores)
        return float(len(asked))

    stack = ImageStack(architecture="cnn", **{**FAST, "evaluations": 4})
    criteria = (last, lambda scores, _: -last(scores, None))
    parts = (replace(check, criterion=one) for one in criteria)
    late_and_early = [stack.fit(train, part, seeds=[0])[0].modules for part in parts]
    for late, early in zip(*late_and_early, strict=True):
        assert np.abs(late.scores(check.inputs) - early.scores(check.inputs)).max() > 1e-3


def share_first(scores, membership):
    """Another criterion than the AUC: members among the first tenth."""
    return (
        membership[np.argsort(-scores)[: scores.size // 10]].mean()
        + 1e-6 * scores[membership].mean()
    )


def test_the_loss_module_is_taken_from_the_best_evaluation():
    """Against a loop written out for one module: autograd, evaluations, and the first of equal
    values.
    """
    rng = np.random.default_rng(3)
    member = np.arange(60) < 30
    losses, check = (
        rng.exponential(size=(60, 2)) * np.exp(-0.7 * member)[:, None] for _ in range(2)
    )
    train, shown = (Labelled(AttackInputs(values, values), member) for values in (losses, check))
    options = {"steps": 200, "seeds": (1, 2), "hidden": 6, "weight_decay": 0.01}
    scores = [alone(losses, member, check, seed) for seed in options["seeds"]]
    for criterion in (area_under_curve, share_first):
        found = fit_loss_modules(train, replace(shown, criterion=criterion), **options)
        for one, evaluations in zip(found, scores, strict=True):
            best = max(evaluations, key=lambda some: criterion(some, member))
            np.testing.assert_allclose(one.scores(shown.inputs), best, atol=2e-3)
            assert np.abs(evaluations[-1] - best).max() > 0.1, (
                "the last evaluation is not the best one"
            )


def alone(losses, member, check, seed):
    """Scores at ten evaluations of one plain network."""
    columns = np.sort(losses, axis=0)
    x, shown = normal_scores(losses, columns), normal_scores(check, columns)
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(2, 6), nn.SiLU(), nn.Linear(6, 6), nn.SiLU(), nn.Linear(6, 1))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=0.01)
    wanted, scores = torch.from_numpy(member).float(), []
    for step in range(1, 201):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(network(x)[:, 0], wanted).backward()
        optimizer.step()
        if step % 20 == 0:
            scores.append(network(shown)[:, 0].detach().double().numpy())
    return scores
