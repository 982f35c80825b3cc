"""The attack on images: a network on the image, one on the losses, and logistic regression on
both.
"""

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import LogisticRegression
from torch import nn

from paperlib.attacks.learned.interface import (
    AttackInputs,
    BoostedTrees,
    FittedAttack,
    FittedClassifier,
    Labelled,
)
from paperlib.attacks.learned.stacked_networks import fit_loss_modules
from paperlib.core import FloatArray, check_at_least
from paperlib.models.images import classifier_for, image_logits
from paperlib.training.images import ImageTraining, fit_images

_KEPT_PARAMETERS = 400_000_000
_SIZE_OF_TREES = 3_000_000  # as if of so many parameters: about 130 of them are kept


@dataclass(frozen=True, kw_only=True)
class ImageStack:
    """An image module and a loss module, stacked.

    Both are trained on the training part and stopped where they do best on the validation part, by
    its criterion (trees on pixels by their log loss); the logistic regression on their two scores
    is fitted on the validation part. The image module never sees a loss, so that baseline and
    attack share it where they see the same images.

    Attributes:
        architecture: Name of the image module: the paper's "resnet101", another network, or
            "trees", boosted trees on the pixels, which see more in images of a few dozen pixels and
            few examples.
        width: Width of "mlp", "cnn" and "cnn4".
        epochs: Largest number of passes of the image module.
        evaluations: Number of its evaluations on the validation part, evenly spaced.
        weight_decay: Weight decay of both modules.
        hidden: Units in each of the two hidden layers of the loss module.
        loss_steps: Training steps of the loss module, on all examples at once.
        least_loss: False shows of each model its loss alone, as in the paper, and not the least
            loss of any label; columns of losses then come in such pairs.

    Source:
        PANORAMIA, appendix C.1, MIA and Baseline training.
    """

    architecture: str = "trees"
    width: int = 16
    epochs: int = 10
    evaluations: int = 5
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    hidden: int = 32
    loss_steps: int = 200
    precision: str = "float32"
    least_loss: bool = True

    def __post_init__(self) -> None:
        counts = ("epochs", "evaluations", "batch_size", "hidden", "loss_steps")
        check_at_least(1, **{name: getattr(self, name) for name in counts})

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"image stack ({self.architecture})"

    def fit(
        self, train: Labelled, validation: Labelled, *, seeds: Sequence[int]
    ) -> "list[FittedStack]":
        """Train both modules and the stacking for each seed, on uint8 images."""
        x = train.inputs.examples
        if x.ndim != 4 or x.dtype != np.uint8:
            raise ValueError(
                f"examples: expected uint8 images (n, channels, side, side), got {x.dtype} "
                f"{x.shape}"
            )
        train, validation = (
            replace(part, inputs=self._seen(part.inputs)) for part in (train, validation)
        )
        images = [_shared_image_module(self, train, validation, seed) for seed in seeds]
        columns: list[Sequence[FittedAttack]] = [images]
        if train.inputs.losses.shape[1]:
            options = {
                "hidden": self.hidden,
                "steps": self.loss_steps,
                "weight_decay": self.weight_decay,
            }
            columns.append(fit_loss_modules(train, validation, seeds=seeds, **options))
        stacks = list[FittedStack]()
        for modules in zip(*columns, strict=True):
            scores = np.stack([module.scores(validation.inputs) for module in modules], axis=1)
            center, scale = scores.mean(axis=0), np.maximum(scores.std(axis=0), 1e-9)
            stacking = LogisticRegression().fit((scores - center) / scale, validation.membership)
            stacks.append(FittedStack(modules, stacking.coef_[0] / scale, center, self._seen))
        return stacks

    def _seen(self, inputs: AttackInputs) -> AttackInputs:
        return inputs if self.least_loss else AttackInputs(inputs.examples, inputs.losses[:, ::2])


@dataclass(frozen=True, eq=False)
class FittedStack:
    """The attack after training: a weighted sum of the scores of the image module and the loss
    module.
    """

    modules: tuple[FittedAttack, ...]
    weights: FloatArray
    center: FloatArray
    seen: Callable[[AttackInputs], AttackInputs]  # what of the inputs the modules see

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member, but for a constant."""
        seen = self.seen(inputs)
        scores = np.stack([module.scores(seen) for module in self.modules], axis=1)
        return (scores - self.center) @ self.weights


@dataclass(frozen=True, eq=False)
class _ImageNetwork:
    module: nn.Module

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds, from the image alone."""
        return image_logits(self.module, inputs.examples).double().diff(dim=1)[:, 0].numpy()


_kept: dict[Hashable, tuple[FittedAttack, int]] = {}
"""Modules trained last and their sizes, by everything they depend on."""


def _keep(key: Hashable, module: FittedAttack, size: int) -> FittedAttack:
    """Keep a module, and drop the oldest while all together are too large."""
    while _kept and size + sum(other for _, other in _kept.values()) > _KEPT_PARAMETERS:
        del _kept[next(iter(_kept))]
    _kept[key] = (module, size)
    return module


def _shared_image_module(
    stack: ImageStack, train: Labelled, validation: Labelled, seed: int
) -> FittedAttack:
    digest = hashlib.sha256(repr((stack, seed)).encode())
    for part in (train, validation):
        for values in (part.inputs.examples, part.membership):
            digest.update(
                f"{values.shape} {values.dtype}".encode() + np.ascontiguousarray(values).tobytes()
            )
    key = (digest.hexdigest(), validation.criterion)
    if key in _kept:
        return _kept[key][0]
    if stack.architecture == "trees":
        images = [
            Labelled(part.inputs.without_losses(), part.membership) for part in (train, validation)
        ]
        [trees] = BoostedTrees().fit(*images, seeds=[seed])
        pixels = FittedClassifier(trees.model, lambda inputs: inputs.without_losses().flat())
        return _keep(key, pixels, _SIZE_OF_TREES)
    network = _fit_network(stack, train, validation, seed)
    return _keep(key, network, sum(values.numel() for values in network.module.parameters()))


def _fit_network(
    stack: ImageStack, train: Labelled, validation: Labelled, seed: int
) -> _ImageNetwork:
    """The image module as it was at its best evaluation."""
    x = train.inputs.examples
    network = classifier_for(x, stack.architecture, 2, width=stack.width, seed=seed)
    shared = ("epochs", "batch_size", "learning_rate", "weight_decay", "precision")
    config = ImageTraining(**{name: getattr(stack, name) for name in shared}, seed=seed)
    count = stack.evaluations
    snapshots = sorted({round(stack.epochs * at / count) for at in range(1, count + 1)} - {0})
    fitted = fit_images(
        network, x, train.membership, config=config, snapshots=snapshots, progress=False
    )
    networks = [_ImageNetwork(module) for module in fitted.snapshots.values()]
    return max(networks, key=lambda network: validation.value(network.scores(validation.inputs)))
