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
from paperlib.core import FloatArray
from paperlib.core.checks import check_at_least
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
        """Train both modules and the stacking for each seed, on uint8 images; without losses the
        image module alone.

        Raises:
            ValueError: Examples that are no uint8 images (n, channels, side, side).
        """
        x = train.inputs.examples
        if x.ndim != 4 or x.dtype != np.uint8:
            raise ValueError(
                f"examples: expected uint8 images (n, channels, side, side), got {x.dtype} "
                f"{x.shape}"
            )
        train = replace(train, inputs=self._seen(train.inputs))
        validation = replace(validation, inputs=self._seen(validation.inputs))
        images = [_shared_image_module(self, train, validation, seed) for seed in seeds]
        # Of each kind of module those of all seeds.
        columns: list[Sequence[FittedAttack]] = [images]
        if train.inputs.losses.shape[1]:
            loss_modules = fit_loss_modules(
                train,
                validation,
                seeds=seeds,
                hidden=self.hidden,
                steps=self.loss_steps,
                weight_decay=self.weight_decay,
            )
            columns.append(loss_modules)
        return [self._stacked(modules, validation) for modules in zip(*columns, strict=True)]

    def _stacked(self, modules: tuple[FittedAttack, ...], validation: Labelled) -> "FittedStack":
        """The modules of one seed, with weights by logistic regression on the validation part."""
        scores = np.stack([module.scores(validation.inputs) for module in modules], axis=1)
        center = scores.mean(axis=0)
        scale = np.maximum(scores.std(axis=0), 1e-9)
        stacking = LogisticRegression().fit((scores - center) / scale, validation.membership)
        weights = stacking.coef_[0] / scale  # of scores that are centred and not scaled
        return FittedStack(modules, weights, center, self._seen)

    def _seen(self, inputs: AttackInputs) -> AttackInputs:
        """The inputs without least losses, every second column, where these are not to be shown."""
        return inputs if self.least_loss else AttackInputs(inputs.examples, inputs.losses[:, ::2])


@dataclass(frozen=True, eq=False)
class FittedStack:
    """The attack after training: a weighted sum of the scores of the image module and the loss
    module; without losses, of the image module alone.

    ``weights`` and ``center`` have shape (modules,).
    """

    modules: tuple[FittedAttack, ...]
    weights: FloatArray
    center: FloatArray
    seen: Callable[[AttackInputs], AttackInputs]  # what of the inputs the modules see

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member, but for a constant, shape (n,)."""
        seen = self.seen(inputs)
        scores = np.stack([module.scores(seen) for module in self.modules], axis=1)
        return (scores - self.center) @ self.weights


@dataclass(frozen=True, eq=False)
class _ImageNetwork:
    """A trained network on images, with two logits: not a member, and a member."""

    module: nn.Module

    def scores(self, inputs: AttackInputs) -> FloatArray:
        """Log odds of being a member, from the image alone, shape (n,)."""
        # The second logit less the first.
        return image_logits(self.module, inputs.examples).double().diff(dim=1)[:, 0].numpy()


_kept: dict[Hashable, tuple[FittedAttack, int]] = {}
"""Modules trained last and their sizes, by everything they depend on."""


def _keep(key: Hashable, module: FittedAttack, size: int) -> FittedAttack:
    """Keep a module of ``size`` parameters, and drop the oldest while all together are too large;
    returns the module.
    """
    while _kept and size + sum(other for _, other in _kept.values()) > _KEPT_PARAMETERS:
        del _kept[next(iter(_kept))]
    _kept[key] = (module, size)
    return module


def _shared_image_module(
    stack: ImageStack, train: Labelled, validation: Labelled, seed: int
) -> FittedAttack:
    """The image module of a seed (trees, or a network), from those trained last if it is among
    them.

    It depends on the images and the membership alone, so that baseline and attack may share it.
    """
    digest = hashlib.sha256(repr((stack, seed)).encode())
    for labelled in (train, validation):
        for values in (labelled.inputs.examples, labelled.membership):
            digest.update(f"{values.shape} {values.dtype}".encode())
            digest.update(np.ascontiguousarray(values).tobytes())
    key = (digest.hexdigest(), validation.criterion)
    if key in _kept:
        return _kept[key][0]
    if stack.architecture == "trees":
        [trees] = BoostedTrees().fit(
            Labelled(train.inputs.without_losses(), train.membership),
            Labelled(validation.inputs.without_losses(), validation.membership),
            seeds=[seed],
        )
        pixels = FittedClassifier(trees.model, lambda inputs: inputs.without_losses().flat())
        return _keep(key, pixels, _SIZE_OF_TREES)
    network = _fit_network(stack, train, validation, seed)
    return _keep(key, network, sum(values.numel() for values in network.module.parameters()))


def _fit_network(
    stack: ImageStack, train: Labelled, validation: Labelled, seed: int
) -> _ImageNetwork:
    """The image module as it was at the best of its evaluations on the validation part."""
    x = train.inputs.examples
    network = classifier_for(x, stack.architecture, 2, width=stack.width, seed=seed)
    config = ImageTraining(
        epochs=stack.epochs,
        batch_size=stack.batch_size,
        learning_rate=stack.learning_rate,
        weight_decay=stack.weight_decay,
        precision=stack.precision,
        seed=seed,
    )
    count = stack.evaluations
    # Evenly spaced up to the last; with more evaluations than epochs some fall together, or on 0.
    epochs = {round(stack.epochs * number / count) for number in range(1, count + 1)}
    snapshots = sorted(epochs - {0})
    fitted = fit_images(
        network, x, train.membership, config=config, snapshots=snapshots, progress=False
    )
    networks = [_ImageNetwork(module) for module in fitted.snapshots.values()]
    return max(networks, key=lambda network: validation.value(network.scores(validation.inputs)))
