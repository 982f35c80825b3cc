"""Targets, members and other examples from files."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.attacks.language import score_texts
from paperlib.audits.panoramia.audit import AuditData, AuditOptions, PanoramiaAudit, audit_model
from paperlib.audits.panoramia.image_models import read_weights
from paperlib.audits.panoramia.images import ImageDefaults, bring_images
from paperlib.audits.panoramia.pools import Model, Trainer
from paperlib.audits.panoramia.table import bring_table
from paperlib.audits.panoramia.text import TextDefaults, bring_text, of_text, of_training
from paperlib.core import check_choice, did_you_mean
from paperlib.core.reading import read_frames
from paperlib.data import read_documents
from paperlib.models.images import classifier_for, image_logits, image_losses
from paperlib.models.language import load_language_model

KINDS = ("table", "images", "text")


def bring_files(
    kind: str,
    members: str,
    *,
    label: str = "",
    generated: str = "",
    nonmembers: str = "",
    base: str = "",
    tokens: int = 32,
    unit: str = "",
    seed: int = 0,
) -> AuditData:
    """Prepare members from files.

    Args:
        kind: "table" (CSV or Parquet), "images" (NPZ with ``images``, uint8 of shape (n, channels, side,
            side), and ``labels`` (n,)) or "text" (file or folder of documents: txt, jsonl, Parquet, ...).
        members: Path of the data that the target was trained on.
        label: Column of a table that helpers predict; empty leaves helpers out.
        generated: The same kind of file with examples of your own generator; empty fits one.
        nonmembers: The same kind of file with real examples the target was not trained on; may be empty, and
            is not used for text.
        base: Language model that a generator of text starts from; empty trains a small, weak one.
        tokens: Length of a chunk of text.
        unit: Column of a table that says what one record is; empty for rows.
        seed: Seed of the parts, the generator, the helpers and the draws, 0 or more.

    Raises:
        ValueError: An unknown kind, files that are not there or hold something else.
    """
    check_choice("kind", kind, KINDS)
    if unit and kind != "table":
        raise ValueError(
            "unit: a column of a table; for images and texts call the audit in Python with unit="
        )
    if kind == "table":
        paths = [members, *filter(None, (generated, nonmembers))]
        rows, *more = read_frames(paths)  # together, so that all have one set of types
        made = more.pop(0) if generated else None
        others = more.pop(0) if nonmembers else None
        own = {"label": label or None, "unit": unit or None, "seed": seed}
        return bring_table(rows, generated=made, nonmembers=others, **own)
    if kind == "images":
        drawn, real = (read_images(path) if path else None for path in (generated, nonmembers))
        return bring_images(*read_images(members), ImageDefaults(seed=seed), generated=drawn, nonmembers=real)
    if nonmembers:
        raise ValueError("nonmembers: not used for text; leave it empty")
    texts = [document.text for document in read_documents(members)]
    other = [document.text for document in read_documents(generated)] if generated else None
    return bring_text(texts, TextDefaults(base=base, tokens=tokens, seed=seed), generated=other)


def audit_files(
    kind: str,
    members: str,
    target: str,
    *,
    train_again: str = "",
    label: str = "",
    architecture: str = "",
    classes: int = 10,
    generated: str = "",
    nonmembers: str = "",
    base: str = "",
    tokens: int = 32,
    unit: str = "",
    seed: int = 0,
    **options: Unpack[AuditOptions],
) -> PanoramiaAudit:
    """Audit a target on members from files.

    Args:
        kind, members, label, generated, nonmembers, base, tokens, unit, seed: As for `bring_files`.
        target, architecture, classes: As for `load_target`.
        train_again: As for `load_training`.
        options: Options of `audit_model`.

    Raises:
        ValueError: What `bring_files`, `load_target`, `load_training` and `audit_model` refuse.
    """
    model = load_target(kind, target, architecture=architecture, classes=classes)  # first, as it is quick
    training = load_training(kind, train_again)
    brought = bring_files(
        kind,
        members,
        label=label,
        generated=generated,
        nonmembers=nonmembers,
        base=base,
        tokens=tokens,
        unit=unit,
        seed=seed,
    )
    return audit_model(model, brought, train_again=training, seed=seed, **options)


def load_target(kind: str, target: str, *, architecture: str = "", classes: int = 10) -> Model:
    """A target model.

    Args:
        kind: Kind of data, as for `bring_files`.
        target: "FILE.py:FUNCTION", a function of yours that takes a table (pandas), images and labels, or
            a list of texts, and returns one loss for each; for text also a causal language model by name or
            folder; for images also a ``.safetensors`` file with the weights of ``architecture``.
        architecture: Architecture of these weights, a name of ``paperlib.models.images.ARCHITECTURES``.
        classes: Number of outputs of these weights.

    Returns:
        What `audit_model` takes. Your function's file is run, so name only files you trust.

    Raises:
        ValueError: Nothing of that name, or not for this kind.
    """
    check_choice("kind", kind, KINDS)
    path, colon, name = target.rpartition(":")
    if colon and path.endswith(".py"):
        function = _function(Path(path), name)
        return of_text(function) if kind == "text" else function
    if kind == "text":
        return of_text(_language_model(target))
    if kind == "images" and target.endswith(".safetensors"):
        return _classifier(_existing(target), architecture, classes)
    raise ValueError(
        f"target: expected FILE.py:FUNCTION{', or a .safetensors file' if kind == 'images' else ''} for "
        f"{kind}, got {target!r}"
    )


def load_training(kind: str, train_again: str) -> Trainer | None:
    """How the target is trained again, from "FILE.py:FUNCTION"; None where that is empty.

    It is a function that takes what the target's function takes, then a seed, and returns such a function.
    Its file is run, so name only files you trust.

    Raises:
        ValueError: Nothing of that name.
    """
    check_choice("kind", kind, KINDS)
    if not train_again:
        return None
    path, _, name = train_again.rpartition(":")
    if not path.endswith(".py"):
        raise ValueError(f"train_again: expected FILE.py:FUNCTION, got {train_again!r}")
    function = _function(Path(path), name, "train_again")
    return of_training(function) if kind == "text" else function


def read_table(path: str) -> pd.DataFrame:
    """One table, as `read_frames` reads it."""
    return read_frames([path])[0]


def read_images(path: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """``images`` and ``labels`` of an NPZ file, else a ValueError; pickled objects are never loaded."""
    try:
        with np.load(_existing(path), allow_pickle=False) as archive:
            if {"images", "labels"} <= set(archive.files):
                return archive["images"], archive["labels"]
            held = ", ".join(archive.files)
    except (OSError, EOFError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: expected an NPZ file with images and labels: {error}") from error
    raise ValueError(f"{path}: expected the arrays images and labels, got {held}")


def _existing(path: str) -> Path:
    if not Path(path).is_file():
        raise ValueError(f"{path!r}: there is no such file in {Path.cwd()}")
    return Path(path)


def _function(path: Path, name: str, what: str = "target") -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(path.stem, _existing(str(path)))
    if spec is None or spec.loader is None:
        raise ValueError(f"{what}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        functions = [known for known, value in vars(module).items() if callable(value)]
        raise ValueError(f"{what}: {path} has no function {name!r}{did_you_mean(name, functions)}")
    return function


def _language_model(name: str) -> Callable[[list[str]], Any]:
    model, tokenizer = load_language_model(name)

    def losses(texts: list[str]) -> Any:
        return -score_texts(model, tokenizer, texts, attacks=["loss"])["loss"].to_numpy()

    return losses


def _classifier(weights: Path, architecture: str, classes: int) -> Model:
    state = read_weights(str(weights))

    def losses(x: NDArray[np.uint8], y: NDArray[np.int64]) -> Any:
        module = classifier_for(x, architecture, classes)
        try:
            module.load_state_dict(state)
        except RuntimeError as error:
            raise ValueError(f"target: {weights} does not fit {architecture!r}: {error}") from error
        return image_losses(image_logits(module.eval(), x), y).numpy()

    return losses
