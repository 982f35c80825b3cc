"""Targets, members and other examples from files."""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from paperlib.attacks.language import score_texts
from paperlib.audits.panoramia.audit import AuditOptions, PanoramiaAudit
from paperlib.audits.panoramia.image_models import read_weights
from paperlib.audits.panoramia.images import audit_images
from paperlib.audits.panoramia.table import audit_table
from paperlib.audits.panoramia.text import TextDefaults, audit_text
from paperlib.core.checks import check_choice, did_you_mean
from paperlib.data import read_documents
from paperlib.models.images import classifier_for, image_logits, image_losses
from paperlib.models.language import load_language_model
from paperlib.reading import read_frames
from paperlib.reading.files import read_file
from paperlib.reading.headers import array_names, load_arrays
from paperlib.reading.limits import TooLargeError

KINDS = ("table", "images", "text")


class _SeededOptions(AuditOptions, total=False):
    """Options of the audits of every kind of data, and their seed."""

    seed: int


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
    group_columns: Sequence[str] = (),
    **options: Unpack[_SeededOptions],
) -> PanoramiaAudit:
    """Audit a target on members from files, as `audit_table`, `audit_images` or `audit_text`.

    An empty text leaves a part out, as None does in the audits.

    Args:
        kind: "table", "images" or "text".
        members, generated, nonmembers: Files of records; no non-members for text.
        target: FILE.py:FUNCTION; for text a causal language model; for images ``.safetensors`` with
            the weights of an ``architecture`` with so many ``classes``.
        train_again: FILE.py:FUNCTION that trains like the target.
        label, unit, group_columns: Columns of a table, used for tables alone.
        base, tokens: Of `TextDefaults`, used for text alone.
        options: Of the audit, and its seed.

    Raises:
        ValueError: An option that this kind does not have, or a file that cannot be read.
    """
    if unit and kind != "table":
        raise ValueError(
            "unit: a column of a table; for images and texts audit in Python with unit="
        )
    if nonmembers and kind == "text":
        raise ValueError("nonmembers: not used for text; leave it empty")
    # The target before the records, since a mistake in its name shows at once.
    model = load_target(kind, target, architecture=architecture, classes=classes)
    training = load_training(train_again)
    files = _Files(members, generated, nonmembers)
    if kind == "table":
        return _audit_table_files(
            model,
            files,
            training,
            label=label,
            unit=unit,
            group_columns=group_columns,
            **options,
        )
    if kind == "images":
        return _audit_image_files(model, files, training, **options)
    texts = [document.text for document in read_documents(members)]
    drawn_texts = [document.text for document in read_documents(generated)] if generated else None
    return audit_text(
        model,
        texts,
        generated=drawn_texts,
        train_again=training,
        settings=TextDefaults(base=base, tokens=tokens),
        **options,
    )


class _Files(NamedTuple):
    """Files of records; "" where there is none."""

    members: str
    generated: str
    nonmembers: str


def _audit_table_files(
    model: Any,
    files: _Files,
    training: Callable[..., Any] | None,
    *,
    label: str,
    unit: str,
    group_columns: Sequence[str],
    **options: Unpack[_SeededOptions],
) -> PanoramiaAudit:
    """The audit of the tables in these files, each column read as one type in all of them; "" for
    label and unit is none. Errors are those of `audit_table` and of files that cannot be read.
    """
    paths = [path for path in files if path]
    frame_of = dict(zip(paths, read_frames(paths), strict=True))
    return audit_table(
        model,
        frame_of[files.members],
        label=label or None,
        generated=frame_of.get(files.generated),
        nonmembers=frame_of.get(files.nonmembers),
        train_again=training,
        unit=unit or None,
        group_columns=group_columns,
        **options,
    )


def _audit_image_files(
    model: Any,
    files: _Files,
    training: Callable[..., Any] | None,
    **options: Unpack[_SeededOptions],
) -> PanoramiaAudit:
    """The audit of the images and labels in these NPZ files; errors are those of `audit_images` and
    `read_images`.
    """
    images, labels = read_images(files.members)
    return audit_images(
        model,
        images,
        labels,
        generated=read_images(files.generated) if files.generated else None,
        nonmembers=read_images(files.nonmembers) if files.nonmembers else None,
        train_again=training,
        **options,
    )


def load_target(
    kind: str, target: str, *, architecture: str = "", classes: int = 10
) -> Callable[..., Any]:
    """A target model as a function from a batch to losses, shape (n,): from tables, from images and
    labels, or from texts.

    Args:
        kind: "table", "images" or "text".
        target: FILE.py:FUNCTION; for text also the name or folder of a causal language model, for
            images a ``.safetensors`` file.
        architecture, classes: Of the network whose weights such a file holds.

    Raises:
        ValueError: An unknown kind, a file without such a function, or weights that do not fit.
    """
    check_choice("kind", kind, KINDS)
    path, colon, name = target.rpartition(":")
    if colon and path.endswith(".py"):
        return _function(Path(path), name)
    if kind == "text":
        model, tokenizer = load_language_model(target)
        return lambda texts: (
            -score_texts(model, tokenizer, texts, attacks=["loss"])["loss"].to_numpy()
        )
    if kind == "images" and target.endswith(".safetensors"):
        weights = _existing(target)
        state = read_weights(str(weights))

        def losses(x: NDArray[np.uint8], y: NDArray[np.int64]) -> Any:
            """Cross-entropy of each image, shape (n,); a ValueError for weights of another
            network.
            """
            module = classifier_for(x, architecture, classes)
            try:
                module.load_state_dict(state)
            except RuntimeError as error:
                raise ValueError(
                    f"target: {weights} does not fit {architecture!r}: {error}"
                ) from error
            return image_losses(image_logits(module.eval(), x), y).numpy()

        return losses
    weights_file = ", or a .safetensors file" if kind == "images" else ""
    raise ValueError(f"target: expected FILE.py:FUNCTION{weights_file} for {kind}, got {target!r}")


def load_training(train_again: str) -> Callable[..., Any] | None:
    """The function that trains the target again, from "FILE.py:FUNCTION"; None where that is
    empty, a ValueError where there is no such file or function.
    """
    path, _, name = train_again.rpartition(":")
    if not train_again:
        return None
    if not path.endswith(".py"):
        raise ValueError(f"train_again: expected FILE.py:FUNCTION, got {train_again!r}")
    return _function(Path(path), name, "train_again")


def read_images(path: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The arrays ``images`` and ``labels`` of an NPZ file, of any shape, unchecked; a ValueError
    where they are not there, or too large for memory. Pickled objects are never loaded.
    """
    try:
        data = read_file(_existing(path))
        names = array_names(data)
        if {"images", "labels"} <= set(names):
            images, labels = load_arrays(data, ["images", "labels"])
            return images, labels
    except TooLargeError as error:
        raise ValueError(f"{path}: {error}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected an NPZ file with images and labels: {error}") from error
    raise ValueError(f"{path}: expected the arrays images and labels, got {', '.join(names)}")


def _existing(path: str) -> Path:
    """The path of a file that is there; a ValueError otherwise."""
    if not Path(path).is_file():
        raise ValueError(f"{path!r}: there is no such file in {Path.cwd()}")
    return Path(path)


def _function(path: Path, name: str, what: str = "target") -> Callable[..., Any]:
    """The function ``name`` of a Python file, which is run; an error in a call of it becomes one
    line. A ValueError, which begins with ``what``, where there is no such file or function.
    """
    spec = importlib.util.spec_from_file_location(path.stem, _existing(str(path)))
    if spec is None or spec.loader is None:
        raise ValueError(f"{what}: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.append(str(path.resolve().parent))  # as when Python runs the file
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        functions = [other for other, value in vars(module).items() if callable(value)]
        raise ValueError(f"{what}: {path} has no function {name!r}{did_you_mean(name, functions)}")

    def called(*arguments: Any) -> Any:
        """The function's value; an error of the user's code becomes a ValueError that names file
        and function.
        """
        try:
            return function(*arguments)
        except (ValueError, OSError, MemoryError):
            raise
        except Exception as error:
            raise ValueError(
                f"{what}: {path}:{name} ended with {type(error).__name__}: {error}"
            ) from error

    return called
