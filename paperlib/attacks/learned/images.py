"""The attack on images: a network on the image, one on the losses, and logistic regression on both."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import nn

from paperlib.attacks.learned.boosting import BoostedTrees
from paperlib.attacks.learned.loss_modules import LossModule, fit_loss_modules
from paperlib.attacks.learned.views import AttackInputs, FittedAttack
from paperlib.core import FloatArray, MembershipScores
from paperlib.models.images import ImageArchitecture, build_image_model, image_logits
from paperlib.training.images import ImageTraining, fit_images

_KEPT_PARAMETERS, _KEPT_TREES = 400_000_000, 128

Module = TypeVar("Module")


@dataclass(frozen=True, kw_only=True)
class ImageStack:
    """An image module and a loss module, stacked.

    Both are trained on the training part and stopped where their AUC on the validation part is highest; the
    logistic regression on their two scores is fitted on the validation part. The image module never sees a
    loss, so that baseline and attack share it where they see the same images.

    Attributes:
        architecture: Of the image module: the paper's "resnet101", another network by name, or "trees",
            boosted trees on the pixels, which see more in images of a few dozen pixels and few examples.
        width: Of "mlp", "cnn" and "cnn4".
        epochs: Most passes of the image module.
        looks: How often, evenly spaced, its validation AUC is looked at.
        batch_size: Images in a batch.
        learning_rate: Of the image module.
        weight_decay: Of both modules.
        hidden: Units in each of the two hidden layers of the loss module.
        loss_steps: Most training steps of the loss module, on all examples at once.
        precision: Of the image module: "float32" or "bfloat16".

    Source:
        PANORAMIA, appendix C.1, MIA and Baseline training.
    """

    architecture: str = "trees"
    width: int = 16
    epochs: int = 10
    looks: int = 5
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    hidden: int = 32
    loss_steps: int = 200
    precision: str = "float32"

    def __post_init__(self) -> None:
        for name in ("epochs", "looks", "batch_size", "hidden", "loss_steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected 1 or more, got {getattr(self, name)}")

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"image stack ({self.architecture})"

    def fit(
        self,
        train: AttackInputs,
        membership: NDArray[np.bool_],
        *,
        validation: AttackInputs,
        validation_membership: NDArray[np.bool_],
        seed: int,
    ) -> "FittedStack":
        """Train both modules and the stacking.

        Raises:
            ValueError: Examples that are not uint8 images.
        """
        held = {"validation": validation, "validation_membership": validation_membership}
        return self.fit_seeds(train, membership, **held, seeds=[seed])[0]

    def fit_seeds(
        self,
        train: AttackInputs,
        membership: NDArray[np.bool_],
        *,
        validation: AttackInputs,
        validation_membership: NDArray[np.bool_],
        seeds: Sequence[int],
    ) -> "list[FittedStack]":
        """What `fit` gives for each seed, but for rounding: the loss modules take their steps together.

        Raises:
            ValueError: Examples that are not uint8 images.
        """
        x = train.examples
        if x.ndim != 4 or x.dtype != np.uint8:
            raise ValueError(
                f"examples: expected uint8 images (n, channels, side, side), got {x.dtype} {x.shape}"
            )
        losses: list[LossModule | None] = [None] * len(seeds)
        if train.losses.shape[1]:
            losses[:] = fit_loss_modules(
                train.losses,
                membership,
                validation=validation.losses,
                validation_membership=validation_membership,
                seeds=seeds,
                hidden=self.hidden,
                steps=self.loss_steps,
                weight_decay=self.weight_decay,
            )
        shown = (train, membership, validation, validation_membership)
        images = [_shared_image_module(self, *shown, seed) for seed in seeds]
        return [
            _stacked(_Modules(image, loss), validation, validation_membership)
            for image, loss in zip(images, losses, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class FittedStack:
    """The attack after training: a weighted sum of the modules' scores."""

    modules: "_Modules"
    weights: FloatArray
    center: FloatArray

    def scores(self, views: AttackInputs) -> FloatArray:
        """Log odds of being a member, but for a constant."""
        return (self.modules.scores(views) - self.center) @ self.weights


@dataclass(frozen=True, eq=False)
class _Modules:
    image: FittedAttack
    loss: LossModule | None

    def scores(self, views: AttackInputs) -> FloatArray:
        """One column per module."""
        columns = [self.image.scores(views)]
        if self.loss is not None:
            columns.append(self.loss.scores(views.losses))
        return np.stack(columns, axis=1)


def _stacked(modules: _Modules, validation: AttackInputs, membership: NDArray[np.bool_]) -> FittedStack:
    scores = modules.scores(validation)
    center, scale = scores.mean(axis=0), np.maximum(scores.std(axis=0), 1e-9)
    stacking = LogisticRegression().fit((scores - center) / scale, membership)
    return FittedStack(modules, stacking.coef_[0] / scale, center)


@dataclass(frozen=True, eq=False)
class _ImageNetwork:
    module: nn.Module

    def scores(self, views: AttackInputs) -> FloatArray:
        """Log odds, from the image alone."""
        return image_logits(self.module, views.examples).double().diff(dim=1)[:, 0].numpy()


@dataclass(frozen=True, eq=False)
class _ImageTrees:
    trees: FittedAttack

    def scores(self, views: AttackInputs) -> FloatArray:
        """Log odds, from the image alone."""
        return self.trees.scores(_without_losses(views))


def _without_losses(views: AttackInputs) -> AttackInputs:
    return AttackInputs(views.examples, np.empty((len(views), 0)))


class _Recent(Generic[Module]):
    """Modules trained last, by everything they depend on; together no larger than ``most``, but for one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._modules: dict[str, tuple[Module, int]] = {}

    def get(self, key: str) -> Module | None:
        return self._modules[key][0] if key in self._modules else None

    def put(self, key: str, module: Module, size: int = 1) -> Module:
        while self._modules and size + sum(kept for _, kept in self._modules.values()) > self._most:
            del self._modules[next(iter(self._modules))]
        self._modules[key] = (module, size)
        return module


_networks: _Recent[FittedAttack] = _Recent(_KEPT_PARAMETERS)
_trees: _Recent[FittedAttack] = _Recent(_KEPT_TREES)


def _digest(settings: object, *shown: NDArray[Any]) -> str:
    digest = hashlib.sha256(repr(settings).encode())
    for values in shown:
        digest.update(f"{values.shape} {values.dtype}".encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _shared_image_module(
    stack: ImageStack,
    train: AttackInputs,
    membership: NDArray[np.bool_],
    validation: AttackInputs,
    validation_membership: NDArray[np.bool_],
    seed: int,
) -> FittedAttack:
    kept = _trees if stack.architecture == "trees" else _networks
    key = _digest((stack, seed), train.examples, membership, validation.examples, validation_membership)
    if (module := kept.get(key)) is not None:
        return module
    if stack.architecture != "trees":
        network = _fit_network(stack, train.examples, membership, validation, validation_membership, seed)
        return kept.put(key, network, sum(values.numel() for values in network.module.parameters()))
    trees = BoostedTrees().fit(
        _without_losses(train),
        membership,
        validation=_without_losses(validation),
        validation_membership=validation_membership,
        seed=seed,
    )
    return kept.put(key, _ImageTrees(trees))


def _fit_network(
    stack: ImageStack,
    x: NDArray[Any],
    y: NDArray[np.bool_],
    validation: AttackInputs,
    validation_y: NDArray[np.bool_],
    seed: int,
) -> _ImageNetwork:
    """The image module as it was at the best look."""
    network = build_image_model(
        ImageArchitecture(
            name=stack.architecture,
            channels=x.shape[1],
            side=x.shape[2],
            outputs=2,
            width=stack.width,
            seed=seed,
        )
    )
    config = ImageTraining(
        epochs=stack.epochs,
        batch_size=stack.batch_size,
        learning_rate=stack.learning_rate,
        weight_decay=stack.weight_decay,
        precision=stack.precision,
        channels_last=stack.precision == "bfloat16",
        seed=seed,
    )
    looks = sorted({round(stack.epochs * at / stack.looks) for at in range(1, stack.looks + 1)} - {0})
    fitted = fit_images(network, x, y, config=config, snapshots=looks, progress=False)
    networks = [_ImageNetwork(module) for module in fitted.snapshots.values()]
    return max(networks, key=lambda network: _auc(network.scores(validation), validation_y))


def _auc(scores: FloatArray, membership: NDArray[np.bool_]) -> float:
    return MembershipScores(scores[membership], scores[~membership]).auc()
