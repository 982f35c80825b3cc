"""The checkout of a run: the folders of its notebooks, profiles, pages and results."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PROFILES = ("smoke", "default", "paper")


@dataclass(frozen=True)
class Project:
    """Folders of one checkout.

    Args:
        root: The folder that holds ``notebooks/`` and ``book/``.
    """

    root: Path

    @property
    def notebooks(self) -> Path:
        """The notebooks as written, without outputs."""
        return self.root / "notebooks"

    @property
    def pages(self) -> Path:
        """The executed notebooks that the book shows."""
        return self.root / "book" / "notebooks"

    @property
    def generated(self) -> Path:
        """What runs write for the book besides pages; none of it is in git."""
        return self.root / "book" / "_generated"

    @property
    def results(self) -> Path:
        """One result file per page."""
        return self.generated / "results"

    @property
    def measured(self) -> Path:
        """Committed result files of large runs."""
        return self.root / "book" / "measured"

    @property
    def kept(self) -> Path:
        """The last finished run of each notebook in each profile: a folder ``PROFILE/NOTEBOOK``."""
        return self.runs / "book"

    @property
    def runs(self) -> Path:
        """Runs outside the book, temporary folders and logs of failures."""
        return self.root / "runs"

    def stems(self) -> list[str]:
        """Names of all notebooks, sorted."""
        return sorted(path.stem for path in self.notebooks.glob("*.ipynb"))

    def notebook(self, name: str) -> Path:
        """The notebook called ``name`` (its stem, or a path to it).

        Raises:
            ValueError: There is none; the message lists the known ones.
        """
        stem = Path(name).name.removesuffix(".ipynb")
        path = self.notebooks / f"{stem}.ipynb"
        if not path.is_file():
            known = ", ".join(self.stems()) or "none yet"
            raise ValueError(f"notebook: no {name!r} in {self.notebooks}; the notebooks are: {known}")
        return path

    def profile(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        """What a profile sets: notebook stem to parameters.

        Raises:
            ValueError: An unknown profile, or a file that is not such a mapping.
        """
        path = self.notebooks / "profiles" / f"{name}.yaml"
        if not path.is_file():
            known = sorted(item.stem for item in path.parent.glob("*.yaml"))
            raise ValueError(f"profile: expected one of {', '.join(known)}; got {name!r}")
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except yaml.YAMLError as error:
            raise ValueError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
        if not isinstance(content, dict) or not all(isinstance(v, dict | None) for v in content.values()):
            raise ValueError(f"{path}: expected notebook names, each with its parameters")
        return {str(stem): parameters or {} for stem, parameters in content.items()}


def find_project(start: Path | None = None) -> Project:
    """The project around ``start`` (the current folder by default).

    Raises:
        ValueError: Neither that folder nor one above it holds ``notebooks/profiles``.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "notebooks" / "profiles").is_dir():
            return Project(folder)
    raise ValueError(f"no notebooks/profiles in {here} or above; run this inside a checkout of paperlib")
