"""Checkpoints: whole or absent, read without running code from the file, and matched to their run."""

import os
import pickle
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from paperlib.io import atomic_file

_FORMAT = 1


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; it is left where it is."""


def save_checkpoint(path: str | os.PathLike[str], run: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Write tensors and plain values; `Saved.state` asks for the same ``run``."""
    with atomic_file(path) as file:
        torch.save({"format": _FORMAT, "run": dict(run), "state": dict(state)}, file)


class Saved:
    """The checkpoint of one run, written again when ``seconds`` have passed; without a path none is."""

    def __init__(
        self, path: str | os.PathLike[str] | None, run: Mapping[str, Any], *, seconds: float = 60.0
    ) -> None:
        self._path, self._run, self._seconds = path, run, seconds
        self._written = time.monotonic()

    def state(self, device: torch.device | str) -> dict[str, Any] | None:
        """The state kept of this run; None without one, and a `CheckpointError` if it cannot be used."""
        if self._path is None or not (source := Path(self._path)).exists():
            return None
        advice = "remove the file, or pass resume=False to start over"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the format of files that fail right after
                checkpoint = torch.load(source, map_location=device, weights_only=True)  # a file runs no code
        except (RuntimeError, EOFError, OSError, ValueError, KeyError, pickle.UnpicklingError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise CheckpointError(f"{source} is not a whole checkpoint ({reason}); {advice}") from error
        if (
            not isinstance(checkpoint, dict)
            or checkpoint.get("format") != _FORMAT
            or "state" not in checkpoint
        ):
            raise CheckpointError(f"{source} is not a checkpoint of this library; {advice}")
        run, own = checkpoint["run"], self._run
        if names := sorted(name for name in {*run, *own} if run.get(name) != own.get(name)):
            raise CheckpointError(
                f"{source} belongs to another run (different: {', '.join(names)}); {advice}"
            )
        return checkpoint["state"]

    def keep(self, state: Callable[[], Mapping[str, Any]], *, now: bool = False) -> None:
        """Write what ``state`` returns, if the time has come or ``now`` says so."""
        if self._path is None or not (now or time.monotonic() - self._written >= self._seconds):
            return
        save_checkpoint(self._path, self._run, state())
        self._written = time.monotonic()
