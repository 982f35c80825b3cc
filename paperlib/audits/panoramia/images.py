"""Your images: what a classifier was trained on, a generator for them, and helpers for their
classes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paperlib.attacks.learned.images import ImageStack
from paperlib.audits.panoramia.audit import AuditData, AuditOptions, PanoramiaAudit, audit_model
from paperlib.audits.panoramia.image_models import ImageHelper, train_helper
from paperlib.audits.panoramia.memorization import copied_members, copies
from paperlib.audits.panoramia.pools import SYNTHETIC, Model
from paperlib.core.checks import check_in, find_ties, one_of_each
from paperlib.core.facts import NAMES_GIVEN
from paperlib.generators.images import FlowConfig
from paperlib.models.images import image_logits, image_losses
from paperlib.words.designs import tie_warnings

Labelled = tuple[NDArray[np.uint8], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True)
class ImageDefaults:
    """How images without a generator of their own are prepared."""

    share: float = 0.4  #: of the members that the generator is trained on, in (0, 1)
    #: None takes a small network for up to 300 pixels, a U-Net beyond
    generator: FlowConfig | None = None
    helper: ImageHelper = field(default_factory=lambda: ImageHelper(name="helper", data="real"))
    attack: ImageStack = field(default_factory=ImageStack)  #: of the baseline, too
    seed: int = 0  #: of the parts and the draws

    def __post_init__(self) -> None:
        check_in("(0, 1)", "share", self.share)


def audit_images(
    target: Callable[[NDArray[np.uint8], NDArray[np.int64]], ArrayLike],
    images: ArrayLike,
    labels: ArrayLike,
    *,
    generated: tuple[ArrayLike, ArrayLike] | None = None,
    nonmembers: tuple[ArrayLike, ArrayLike] | None = None,
    train_again: Callable[[NDArray[np.uint8], NDArray[np.int64], int], Model] | None = None,
    settings: ImageDefaults | None = None,
    unit: Sequence[Any] | None = None,
    seed: int = 0,
    **options: Unpack[AuditOptions],
) -> PanoramiaAudit:
    """Measure with PANORAMIA how much a classifier leaks about its training images.

    Non-members are generated, as `bring_images` describes; the rest is as in `audit_table`.

    Guarantee:
        As for `audit_table`, for the first game.

    Args:
        target: Function from images and labels to losses, shape (n,), lower where it knows the
            image.
        images: Images the target was trained on, uint8, shape (n, channels, side, side), n of 30 or
            more.
        labels: Class numbers the target was trained on, 0 or more, shape (n,).
        generated: Images and labels of a generator that saw none of ``images``; None trains a
            rectified flow on 40 % of them.
        nonmembers: Real images and labels the target was not trained on, for a comparison.
        train_again, seed, options: As for `audit_table`, with images and labels in the place of a
            table.
        settings: Generator, helpers and attack; None takes the defaults. ``seed`` is used in place
            of theirs.
        unit: The record that each image belongs to, such as a person: one image of each is audited.
    """
    defaults = replace(settings or ImageDefaults(), seed=seed)
    data = bring_images(
        images, labels, defaults, generated=generated, nonmembers=nonmembers, unit=unit
    )
    return audit_model(target, data, train_again=train_again, seed=seed, **options)


def bring_images(
    images: ArrayLike,
    labels: ArrayLike,
    defaults: ImageDefaults | None = None,
    *,
    generated: tuple[ArrayLike, ArrayLike] | None = None,
    nonmembers: tuple[ArrayLike, ArrayLike] | None = None,
    unit: Sequence[Any] | None = None,
) -> AuditData:
    """Prepare images the target was trained on; arguments as for `audit_images`.

    Without generated images a share of the members becomes D_G, from which a rectified flow learns,
    class by class, and so do helpers; the rest is audited. With them all members are audited; their
    generator must not have seen any. Half of the generated images go to a helper that learns these
    alone.

    Raises:
        ValueError: Images or labels of other types or shapes, or images that are members and
            non-members.
    """
    settings = defaults or ImageDefaults()
    x, y = _checked("images", (images, labels))
    if unit is not None:
        rows = one_of_each(unit, len(x), settings.seed)
        x, y = x[rows], y[rows]
    drawn = None if generated is None else _checked("generated", generated, x)
    others = None if nonmembers is None else _checked("nonmembers", nonmembers, x)
    warnings = tie_warnings(find_ties("images", x))
    if others is not None:
        _check_apart(x, others[0])
    order = np.random.default_rng(settings.seed).permutation(len(x))
    cut = round(settings.share * len(x)) if drawn is None else 0
    learned = x[order[:cut]], y[order[:cut]]  # D_G; empty with generated images
    audited = x[order[cut:]], y[order[cut:]]
    if drawn is None:
        drawn = _generated(settings, learned, 2 * len(audited[0]))
    half = len(drawn[0]) // 2
    to_show = drawn[0][:half], drawn[1][:half]
    to_learn = drawn[0][half:], drawn[1][half:]
    if cut:
        warnings += copies(to_show[0], learned[0], audited[0]).warnings
    else:
        warnings += copied_members([*map(bytes, drawn[0])], [*map(bytes, audited[0])])
    outputs = 1 + max(int(audited[1].max()), int(drawn[1].max()))
    learn = partial(_helper, settings, outputs)
    return AuditData(
        members=audited,
        generated=to_show,
        nonmembers=others,
        known=learned if cut else None,
        helpers={SYNTHETIC: learn(*to_learn, settings.helper.seed)},
        train=learn,
        examples=lambda images, labels: images,
        attacks=(settings.attack,),
        unit="" if unit is None else NAMES_GIVEN,
        warnings=warnings,
    )


def _check_apart(members: NDArray[np.uint8], nonmembers: NDArray[np.uint8]) -> None:
    """Refuse (ValueError) images that stand among members and among non-members, (n, channels,
    side, side) each.
    """
    both = set(map(bytes, members)) & set(map(bytes, nonmembers))
    if both:
        raise ValueError(
            f"nonmembers: {len(both):,} images are among the members, too; leave them out"
        )


def _generated(settings: ImageDefaults, learned: Labelled, count: int) -> Labelled:
    """``count`` images and labels drawn from a generator that learned D_G, ``learned``: that of the
    settings, or a small network for up to 300 numbers of an image, a U-Net beyond.
    """
    config = settings.generator
    if config is None and learned[0][0].size <= 300:
        config = FlowConfig(network="mlp", width=192)
    elif config is None:
        config = FlowConfig(network="unet", width=64)
    generator = config.fit(*learned, classes=1 + int(learned[1].max()))
    images, labels = generator.sample(count, settings.seed + 1)
    return images, np.asarray(labels, dtype=np.int64)


def _checked(
    name: str, images_and_labels: tuple[Any, Any], like: NDArray[np.uint8] | None = None
) -> Labelled:
    """Checked images, uint8, shape (n, channels, side, side), and labels, int64, shape (n,).

    Raises:
        ValueError: Other types or shapes, negative labels, or images of another size than ``like``;
            the message begins with ``name``.
    """
    images, labels = images_and_labels
    x, y = np.asarray(images), np.asarray(labels)
    if x.ndim != 4 or x.dtype != np.uint8 or x.shape[2] != x.shape[3] or len(x) < 2:
        raise ValueError(
            f"{name}: expected uint8 of shape (n, channels, side, side), got {x.dtype} {x.shape}"
        )
    if like is not None and x.shape[1:] != like.shape[1:]:
        raise ValueError(f"{name}: expected images of shape {like.shape[1:]}, got {x.shape[1:]}")
    if y.shape != (len(x),) or y.dtype.kind not in "iu" or y.min() < 0:
        raise ValueError(
            f"{name}: expected {len(x)} labels, whole numbers of 0 or more, got {y.dtype} {y.shape}"
        )
    return x, y.astype(np.int64)


def _helper(
    settings: ImageDefaults,
    outputs: int,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    seed: int,
) -> Model:
    """A helper trained on images and labels, as a function from images and labels to losses,
    (n,).
    """
    module = train_helper(replace(settings.helper, seed=seed), images, labels, outputs)
    return lambda x, y: image_losses(image_logits(module, x), y).numpy().astype(np.float64)
