"""Helpers on images, and what a model says of an image."""

import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from paperlib.audits.panoramia.pools import Helper
from paperlib.core import FloatArray
from paperlib.core.checks import check_choice
from paperlib.io.files import file_sha256
from paperlib.models.images import classifier_for, image_logits, image_losses
from paperlib.models.images.build import pretrained_classifier
from paperlib.reading.limits import TooLargeError, check_size, in_bytes
from paperlib.training.images import ImageTraining, fit_images


@dataclass(frozen=True, kw_only=True)
class ImageHelper(ImageTraining):
    """A model that the baseline may ask, and how it is trained."""

    name: str  # "synthetic" is the paper's: what its baseline sees
    # Generated images ("synthetic"), those the generator was trained on ("real"), or other real
    # ones.
    data: str
    architecture: str = "cnn"  # a name of ``paperlib.models.images.ARCHITECTURES``
    width: int = 16  # of "mlp", "cnn" and "cnn4"
    epochs: int = 15
    # A model of timm that starts from pretrained weights, in the place of ``architecture``.
    timm: str = ""
    weights: str = ""  # a file with these weights; empty downloads them
    seed: int = 1  # of parameters and batches

    def __post_init__(self) -> None:
        """Refuse (ValueError) unknown data, and weights without the name of their model."""
        super().__post_init__()
        check_choice("data", self.data, ("synthetic", "real", "others"))
        if self.weights and not self.timm:
            raise ValueError(
                f"weights: expected the name of their model as timm, got {self.weights!r} alone"
            )

    @property
    def helper(self) -> Helper:
        """The helper as audits know it."""
        return Helper(self.name, "synthetic" if self.data == "synthetic" else "real", self.epochs)

    def about(self) -> dict[str, Any]:
        """What its losses depend on, as values of JSON for the key of a cache: each setting by
        name, and in place of the weights' path a checksum of the file ("" without one).
        """
        return {**asdict(self), "weights": weights_tag(self.weights)}


def train_helper(
    helper: ImageHelper,
    x: NDArray[np.uint8],
    y: NDArray[np.int64],
    outputs: int,
    checkpoint: Path | None = None,
) -> nn.Module:
    """Train a helper, or the model that gives generated images their labels.

    Args:
        helper: Which network, and how it is trained.
        x: Images, uint8, shape (n, channels, side, side).
        y: Class numbers, shape (n,), or attributes, (n, attributes).
        outputs: Logits of the network: classes or attributes.
        checkpoint: File from which an interrupted training goes on; None keeps none.

    Raises:
        ValueError: An architecture that is not known, or weights that cannot be read.
        FileNotFoundError: A file of weights that is not there.
    """
    if helper.timm:
        weights = read_weights(helper.weights) if helper.weights else None
        module = pretrained_classifier(helper.timm, outputs, weights=weights, seed=helper.seed)
    else:
        module = classifier_for(
            x, helper.architecture, outputs, width=helper.width, seed=helper.seed
        )
    return fit_images(module, x, y, config=helper, checkpoint=checkpoint).module


def likely_labels(
    module: nn.Module, x: NDArray[np.uint8], *, multi_label: bool
) -> NDArray[np.int64]:
    """The most likely class of each image, shape (n,), or with ``multi_label`` whether each
    attribute is likelier than not, (n, attributes); images are uint8 (n, channels, side, side).
    """
    logits = image_logits(module, x)
    return ((logits > 0).long() if multi_label else logits.argmax(dim=1)).numpy()


def answers(module: nn.Module, x: NDArray[np.uint8], y: NDArray[np.int64]) -> FloatArray:
    """What an attack sees of each image: its loss, and the least loss of any label, nats, shape (n,
    2); ``x`` are uint8 images, ``y`` class numbers, (n,), or attributes, (n, attributes).
    """
    logits = image_logits(module, x)
    guess = (logits > 0).long() if y.ndim == 2 else logits.argmax(dim=1)
    losses = [image_losses(logits, labels).numpy() for labels in (y, guess)]
    return np.stack(losses, axis=1)


def read_weights(path: str) -> dict[str, Tensor]:
    """Tensors by name from a safetensors file, or from one of torch's without running what is in
    it.

    Raises:
        ValueError: A file that is not there, cannot be read as tensors or holds something else.
        TooLargeError: It does not fit into memory.
    """
    file = _weights_file(path)
    try:
        _check_weights(file)
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file  # comes with timm, an extra

            return load_file(file)
        tensors = torch.load(file, map_location="cpu", weights_only=True)
    except TooLargeError:
        raise
    except Exception as error:
        # safetensors, zip and pickle have their own errors, without a common class.
        raise ValueError(f"weights: {path} cannot be read as tensors ({error})") from error
    if isinstance(tensors, dict):
        tensors = tensors.get("state_dict", tensors)
    if not isinstance(tensors, dict) or not all(map(torch.is_tensor, tensors.values())):
        raise ValueError(f"weights: {path} holds something else than tensors by name")
    return tensors


def _check_weights(file: Path) -> None:
    """Refuse (`TooLargeError`) weights that do not fit into memory: torch's are an archive, which
    may unfold.
    """
    size = file.stat().st_size
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
    check_size(size, f"weights: {file.name}: {in_bytes(size)}")


def weights_tag(path: str) -> str:
    """SHA-256 of a file of weights, which must be there, for keys of caches; empty for none."""
    return file_sha256(_weights_file(path)) if path else ""


def _weights_file(path: str) -> Path:
    """The path of a file of weights; a FileNotFoundError where it is not there."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"weights: no file {path}")
    return file
