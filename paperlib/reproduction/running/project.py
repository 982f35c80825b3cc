"""The checkout of a run: the folders of its notebooks, profiles, pages and results."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_PACKAGE = Path(__file__).resolve().parents[2]
_BASE, _DATA, _MADE_UP = "base", "data", "made up"
_DEVICE, _GPU = "device", "gpu"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where it is installed


@dataclass(frozen=True)
class Project:
    """Folders of one checkout; ``root`` holds ``notebooks/`` and ``book/``."""

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
        """The notebook called ``name``, its stem or a path to it; a ValueError lists the known
        ones.
        """
        stem = Path(name).name.removesuffix(".ipynb")
        path = self.notebooks / f"{stem}.ipynb"
        if not path.is_file():
            from paperlib.core.checks import did_you_mean  # the shell completes names without numpy

            stems = ", ".join(self.stems()) or "none yet"
            meant = did_you_mean(stem, self.stems())
            raise ValueError(
                f"notebook: no {name!r} in {self.notebooks}{meant}; the notebooks are: {stems}"
            )
        return path

    def profiles(self) -> list[str]:
        """Names of all profiles, sorted."""
        return sorted(path.stem for path in (self.notebooks / "profiles").glob("*.yaml"))

    def profile(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        """What a profile sets: notebook stem to parameters, over those of the profile it is based
        on.

        Raises:
            ValueError: No such profile, or a file that is not as profiles are written.
        """
        content = self._profile_file(name)
        base = content.get(_BASE)
        below: Mapping[str, Mapping[str, Any]] = {} if base is None else self.profile(base)
        above = {str(stem): values or {} for stem, values in _notebooks_in(content).items()}
        return _merged(below, above)

    def made_up(self, name: str) -> bool:
        """Whether a profile runs on made-up data (``data: made up`` in its file); errors as in
        `profile`.
        """
        return self._profile_file(name).get(_DATA) == _MADE_UP

    def needs_gpu(self, name: str) -> bool:
        """Whether a profile is sized for a GPU (``device: gpu`` in its file or that of a profile it
        is based on) and runs on true data; errors as in `profile`.
        """
        content = self._profile_file(name)
        if content.get(_DATA) == _MADE_UP:  # rehearsed with small counts, on any machine
            return False
        base = content.get(_BASE)
        return content.get(_DEVICE) == _GPU or (base is not None and self.needs_gpu(base))

    def _profile_file(self, name: str) -> dict[str, Any]:
        """The checked content of a profile's file; a ValueError where there is none, or for another
        form.
        """
        path = self.notebooks / "profiles" / f"{name}.yaml"
        if not path.is_file():
            from paperlib.core.checks import did_you_mean

            meant = did_you_mean(name, self.profiles())
            raise ValueError(
                f"profile: expected one of {', '.join(self.profiles())}; got {name!r}{meant}"
            )
        try:
            content = yaml.load(path.read_text(encoding="utf-8"), _Loader) or {}
        except yaml.YAMLError as error:
            raise ValueError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
        are_parameters = isinstance(content, dict) and all(
            isinstance(value, dict | None) for value in _notebooks_in(content).values()
        )
        if not are_parameters:
            raise ValueError(f"{path}: expected notebook names, each with its parameters")
        base = content.get(_BASE, "")
        profiles = self.profiles()
        if base != "" and (base not in profiles or base == name):
            raise ValueError(f"{path}: base: expected one of {', '.join(profiles)}; got {base!r}")
        for key, only in ((_DATA, _MADE_UP), (_DEVICE, _GPU)):
            value = content.get(key, only)
            if value != only:
                raise ValueError(f"{path}: {key}: expected {only!r} or no such line; got {value!r}")
        return content


def _notebooks_in(content: Mapping[Any, Any]) -> dict[Any, Any]:
    """What a profile's file says of notebooks, without its base, data and device."""
    beside = (_BASE, _DATA, _DEVICE)
    return {stem: values for stem, values in content.items() if stem not in beside}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """``above`` over ``below``: mappings are merged name by name, anything else is replaced."""
    merged = dict(below)
    for name, value in above.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _merged(merged[name], value) if both else value
    return merged


def find_project(start: Path | None = None) -> Project:
    """The project around ``start``; by default that around the current folder or, where there is
    none, the checkout that this package lies in. A ValueError outside a checkout.
    """
    here = (start or Path.cwd()).resolve()
    own = () if start else (_PACKAGE.parent,)
    for folder in (here, *here.parents, *own):
        if (folder / "notebooks" / "profiles").is_dir():
            return Project(folder)
    raise ValueError(
        f"no notebooks/profiles in {here} or above; run this inside a checkout of paperlib"
    )
