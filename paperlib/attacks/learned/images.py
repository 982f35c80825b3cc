"""The attack on pictures: a network on the picture, one on the losses, and logistic regression on both."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from paperlib.attacks.learned.boosting import BoostedTrees
from paperlib.attacks.learned.views import FittedAttack, Views
from paperlib.core import FloatArray, MembershipScores
from paperlib.models.images import ImageArchitecture, build_image_model, picture_logits
from paperlib.training.pictures import PictureTraining, fit_pictures

_KEPT = 8


@dataclass(frozen=True, kw_only=True)
class PictureStack:
    """An image module and a loss module, stacked.

    Both are trained on the training part and stopped where their AUC on the validation part is highest; the
    logistic regression on their two scores is fitted on the validation part. The image module never sees a
    loss, so that baseline and attack share it where they see the same pictures.

    Attributes:
        architecture: Of the image module: the paper's "resnet101", another network by name, or "trees",
            boosted trees on the pixels, which see more in pictures of a few dozen pixels and few examples.
        width: Of "mlp", "cnn" and "cnn4".
        epochs: Most passes of the image module.
        looks: How often, evenly spaced, its validation AUC is looked at.
        batch_size: Pictures in a batch.
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
        return f"picture stack ({self.architecture})"

    def fit(
        self,
        train: Views,
        membership: NDArray[np.bool_],
        *,
        validation: Views,
        validation_membership: NDArray[np.bool_],
        seed: int,
    ) -> "FittedStack":
        """Train both modules and the stacking.

        Raises:
            ValueError: Examples that are not uint8 pictures.
        """
        x = train.examples
        if x.ndim != 4 or x.dtype != np.uint8:
            raise ValueError(
                f"examples: expected uint8 pictures (n, channels, side, side), got {x.dtype} {x.shape}"
            )
        image = _shared_image_module(self, train, membership, validation, validation_membership, seed)
        loss = None
        if train.losses.shape[1]:
            loss = _fit_losses(self, train.losses, membership, validation.losses, validation_membership, seed)
        modules = _Modules(image, loss)
        scores = modules.scores(validation)
        center, scale = scores.mean(axis=0), np.maximum(scores.std(axis=0), 1e-9)
        stacking = LogisticRegression().fit((scores - center) / scale, validation_membership)
        return FittedStack(modules, stacking.coef_[0] / scale, center)


@dataclass(frozen=True, eq=False)
class FittedStack:
    """The attack after training: a weighted sum of the modules' scores."""

    modules: "_Modules"
    weights: FloatArray
    center: FloatArray

    def scores(self, views: Views) -> FloatArray:
        """Log odds of being a member, but for a constant."""
        return (self.modules.scores(views) - self.center) @ self.weights


@dataclass(frozen=True, eq=False)
class _Modules:
    image: FittedAttack
    loss: "_LossModule | None"

    def scores(self, views: Views) -> FloatArray:
        """One column per module."""
        columns = [self.image.scores(views)]
        if self.loss is not None:
            columns.append(self.loss.scores(views.losses))
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class _ImageNetwork:
    module: nn.Module

    def scores(self, views: Views) -> FloatArray:
        """Log odds, from the picture alone."""
        return picture_logits(self.module, views.examples).double().diff(dim=1)[:, 0].numpy()


@dataclass(frozen=True, eq=False)
class _ImageTrees:
    trees: FittedAttack

    def scores(self, views: Views) -> FloatArray:
        """Log odds, from the picture alone."""
        return self.trees.scores(_without_losses(views))


def _without_losses(views: Views) -> Views:
    return Views(views.examples, np.empty((len(views), 0)))


class _Recent:
    """Image modules trained last, found by everything they depend on."""

    def __init__(self) -> None:
        self._modules: dict[str, FittedAttack] = {}

    def get(self, key: str, train: Callable[[], FittedAttack]) -> FittedAttack:
        if key not in self._modules:
            while len(self._modules) >= _KEPT:
                del self._modules[next(iter(self._modules))]
            self._modules[key] = train()
        return self._modules[key]


_recent = _Recent()


def _shared_image_module(
    stack: PictureStack,
    train: Views,
    membership: NDArray[np.bool_],
    validation: Views,
    validation_membership: NDArray[np.bool_],
    seed: int,
) -> FittedAttack:
    digest = hashlib.sha256(repr((stack, seed)).encode())
    for values in (train.examples, membership, validation.examples, validation_membership):
        digest.update(f"{values.shape} {values.dtype}".encode() + np.ascontiguousarray(values).tobytes())

    def compute() -> FittedAttack:
        if stack.architecture != "trees":
            return _fit_network(stack, train.examples, membership, validation, validation_membership, seed)
        parts = [_without_losses(views) for views in (train, validation)]
        return _ImageTrees(
            BoostedTrees().fit(
                parts[0],
                membership,
                validation=parts[1],
                validation_membership=validation_membership,
                seed=seed,
            )
        )

    return _recent.get(digest.hexdigest(), compute)


def _fit_network(
    stack: PictureStack,
    x: NDArray[Any],
    y: NDArray[np.bool_],
    validation: Views,
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
    config = PictureTraining(
        epochs=stack.epochs,
        batch_size=stack.batch_size,
        learning_rate=stack.learning_rate,
        weight_decay=stack.weight_decay,
        precision=stack.precision,
        channels_last=stack.precision == "bfloat16",
        seed=seed,
    )
    looks = sorted({round(stack.epochs * at / stack.looks) for at in range(1, stack.looks + 1)} - {0})
    fitted = fit_pictures(network, x, y, config=config, snapshots=looks, progress=False)
    networks = [_ImageNetwork(module) for module in fitted.snapshots.values()]
    return max(networks, key=lambda network: _auc(network.scores(validation), validation_y))


@dataclass(frozen=True, eq=False)
class _LossModule:
    """A multi-layer perceptron on losses, each column as normal scores of ranks in the training part."""

    network: nn.Module
    sorted_columns: FloatArray

    def scores(self, losses: FloatArray) -> FloatArray:
        """Log odds, shape (n,)."""
        with torch.inference_mode():
            return self.network(_normal_scores(losses, self.sorted_columns))[:, 0].double().numpy()


def _normal_scores(losses: FloatArray, sorted_columns: FloatArray) -> Tensor:
    """Columns as standard normal quantiles: losses near 0 and large ones alike keep their order."""
    count = len(sorted_columns)
    ranks = [
        (np.searchsorted(column, values, "left") + np.searchsorted(column, values, "right") + 1) / 2
        for column, values in zip(sorted_columns.T, losses.T, strict=True)
    ]
    return torch.from_numpy(ndtri(np.stack(ranks, axis=1) / (count + 1))).float()


def _fit_losses(
    stack: PictureStack,
    losses: FloatArray,
    y: NDArray[np.bool_],
    validation_losses: FloatArray,
    validation_y: NDArray[np.bool_],
    seed: int,
) -> _LossModule:
    """The loss module as it was at the best of ten looks."""
    columns = np.sort(losses, axis=0)
    x, wanted = _normal_scores(losses, columns), torch.from_numpy(y).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _perceptron(x.shape[1], stack.hidden)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=stack.weight_decay, fused=True)
    module = _LossModule(network, columns)
    best, state = -np.inf, network.state_dict()
    every = max(1, stack.loss_steps // 10)
    for step in range(1, stack.loss_steps + 1):
        optimizer.zero_grad()
        binary_cross_entropy_with_logits(network(x)[:, 0], wanted).backward()
        optimizer.step()
        if step % every == 0 and (value := _auc(module.scores(validation_losses), validation_y)) > best:
            best, state = value, {name: values.clone() for name, values in network.state_dict().items()}
    network.load_state_dict(state)
    return module


def _perceptron(inputs: int, hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1)
    )


def _auc(scores: FloatArray, membership: NDArray[np.bool_]) -> float:
    return MembershipScores(scores[membership], scores[~membership]).auc()
