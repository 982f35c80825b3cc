"""What to install for a part of this package that is missing.

The package is called ``leakbound`` on an index, where ``paperlib`` is another project. From a
checkout the commands name its folder, so that what it holds is not replaced by a release.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Sequence
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import paperlib

DISTRIBUTION = "leakbound"
"""The name of this package on an index, and in the metadata of what is installed."""

_IMPORTED_AS = {
    "crypto": "pycryptodome",
    "pil": "pillow",
    "re2": "google-re2",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Import names, in small letters, of packages that have another name on an index."""

_EXTRA_OF_COMMAND = {
    "audit-release": "features",
    "audit-data --kind text": "language",
    "canaries": "language",
    "audit-lm": "language",
    "audit-texts": "language",
    "audit-chat": "corpora",
    "identifiers": "corpora",
}
"""Commands that need more than the package itself, each with the extra that has all of it; a kind
of data that needs another extra stands behind its command."""

_NAME = re.compile(rf"^name\s*=\s*[\"']{DISTRIBUTION}[\"']", re.MULTILINE)
_EXTRA = re.compile(r"extra\s*==\s*[\"']([\w-]+)[\"']")


def install_command(extra: str = "") -> str:
    """``pip install`` of this checkout, or by name where there is none, with an extra.

    "" is the package without extras. Raises ValueError for an extra that does not exist.
    """
    extras = requirements()
    if extra not in extras:
        raise ValueError(
            f"extra: expected one of {', '.join(sorted(filter(None, extras)))}; got {extra!r}"
        )
    folder = checkout()
    option = ""
    if folder is None:
        target = DISTRIBUTION
    else:
        target = "." if folder == Path.cwd() else str(folder)
        if _direct_url().get("dir_info", {}).get("editable"):
            option = "-e "
    if extra:
        target += f"[{extra}]"
    return f"pip install {option}{shlex.quote(target)}"


def called_command(words: Sequence[str]) -> str:
    """The command among the words of a command line, with ``--kind`` where it decides the extra.

    >>> called_command(["--debug", "audit-data", "rows", "--kind=text"])
    'audit-data --kind text'
    >>> called_command(["audit", "a.csv", "--kind", "losses"])
    'audit'
    """
    names = [word for word in words if not word.startswith("-")]
    command = names[0] if names else ""
    split_words = " ".join(words).replace("--kind=", "--kind ").split()
    for option, kind in pairwise(split_words):
        if option == "--kind" and f"{command} --kind {kind}" in _EXTRA_OF_COMMAND:
            return f"{command} --kind {kind}"
    return command


def missing_package(module: str, command: str = "") -> str:
    """One line for an import that failed: the package of ``module``, and what installs it.

    Where several extras have the package, it is the one with all that ``command``, as by
    `called_command`, needs; otherwise the first in pyproject.toml. PackageNotFoundError where
    neither a checkout nor an installed package says which extras there are.
    """
    first = module.partition(".")[0].lower()
    package = _IMPORTED_AS.get(first, first.replace("_", "-"))
    extras = _extras_with(package)
    if not extras:
        return f"{module} is not installed"
    extra = _EXTRA_OF_COMMAND.get(command, "")
    if extra not in extras:
        extra = extras[0]
    return f"{package} is not installed; to get it: {install_command(extra)}"


def _extras_with(package: str) -> list[str]:
    """The extras that have a package, in the order of pyproject.toml."""
    extras: list[str] = []
    for extra, packages in requirements().items():
        if package in map(_name, packages):
            extras.append(extra)
    return extras


def requirements() -> dict[str, list[str]]:
    """Requirements, such as "numpy>=2", of each extra, and of the package itself under ""; the
    extra ``all`` is left out. They come from the checkout, else from what is installed.

    Raises:
        PackageNotFoundError: There is no checkout, and the package is not installed.
    """
    folder = checkout()
    if folder is not None:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        extras = {"": project["dependencies"], **project["optional-dependencies"]}
    else:
        extras: dict[str, list[str]] = {"": []}
        for line in metadata.requires(DISTRIBUTION) or []:
            requirement, _, marker = line.partition(";")
            match = _EXTRA.search(marker)
            extra = match[1] if match else ""
            extras.setdefault(extra, []).append(requirement.strip())
    extras.pop("all", None)
    return extras


def _name(requirement: str) -> str:
    """The package of a requirement, in the form in which an index compares names."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def checkout() -> Path | None:
    """The checkout that this package is imported from, or else was installed from: a folder whose
    pyproject.toml names the package; None where there is none.
    """
    folders = [Path(paperlib.__file__).parents[1]]
    url = urlsplit(_direct_url().get("url", ""))
    if url.scheme == "file":
        folders.append(Path(unquote(url.path)))
    for folder in folders:
        try:
            text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        except OSError:
            continue
        if _NAME.search(text):
            return folder
    return None


def _direct_url() -> dict[str, Any]:
    """Where pip took this package from (PEP 610); empty where it came from an index, or is not
    installed.
    """
    try:
        return json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        return {}
