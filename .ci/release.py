"""Build wheel and sdist of the last commit, and try the wheel as a stranger does: ``make release``.

The wheel is installed into a new environment, away from this checkout, with the versions that an
index has today. There the tests of ``tests/public`` run, first without extras, then with those of
``EXTRAS``. A tag is only made where it is asked for.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence, Set
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
UV = str(Path(sys.executable).parent / "uv")
EXTRAS = ("", "features")
"""What is installed in turn beside the package; the last is still a small download."""
KINDS = {".py", ".pyi", ".typed", ".yaml", ".json", ".css", ".csv", ".j2", ".mplstyle"}
"""Endings of what a wheel holds: code, and the tables, styles and templates that it reads."""
ABOUT = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}
"""What a wheel says of itself, in its folder ``*.dist-info``."""


class ReleaseError(Exception):
    """What stands in the way of a release, in one line."""


def version_in(text: str) -> str:
    """The version that a module states.

    >>> version_in('import numpy\\n\\n__version__ = "1.2.0rc1"\\n')
    '1.2.0rc1'
    """
    stated = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if stated is None:
        raise ReleaseError("paperlib/__init__.py states no __version__")
    return stated[1]


def has_section(changelog: str, version: str) -> bool:
    """Whether a changelog has a dated section of a version.

    >>> has_section("## 1.0.0 of 2026-11-29", "1.0.0"), has_section("## 1.0.0 soon", "1.0.0")
    (True, False)
    """
    title = rf"^## {re.escape(version)} of \d{{4}}-\d\d-\d\d$"
    return re.search(title, changelog, re.MULTILINE) is not None


def call(*command: str, cwd: Path = ROOT) -> None:
    """Run a command, without settings that would let it find this checkout."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTEST_ADDOPTS")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    try:
        subprocess.run(command, cwd=cwd, check=True, env=environment)
    except subprocess.CalledProcessError as error:
        raise ReleaseError(f"{' '.join(command)}: ended with {error.returncode}") from None


def git(*words: str) -> str:
    """What git prints."""
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def unpack_commit(folder: Path) -> None:
    """Write the files of the last commit to a folder: nothing else gets into a release."""
    command = ["git", "-C", str(ROOT), "archive", "HEAD"]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def build(source: Path) -> list[Path]:
    """Write sdist and wheel to ``dist``, the wheel from the sdist; returns their paths, the wheel
    last.
    """
    shutil.rmtree(DIST, ignore_errors=True)
    # The locked setuptools builds, as in `make setup`.
    options = ["--quiet", "--no-build-isolation", "--python", sys.executable]
    call(UV, "build", *options, "--out-dir", str(DIST), str(source))
    (sdist,) = DIST.glob("*.tar.gz")
    (wheel,) = DIST.glob("*.whl")
    return [sdist, wheel]


def check_contents(wheel: Path, source: Path) -> None:
    """Raise ReleaseError where a wheel holds more or less than the tool of an unpacked commit."""
    files = [path for path in (source / "paperlib").rglob("*") if path.is_file()]
    committed = {path.relative_to(source).as_posix() for path in files}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    faults = faults_of_contents(names, committed)
    if faults:
        raise ReleaseError(f"{wheel.name}: {len(faults)} faults, such as {faults[0]}")


def faults_of_contents(names: Set[str], committed: Set[str]) -> list[str]:
    """What is wrong with the files of a wheel: only the tool's rooms and known kinds, all of them.

    >>> faults_of_contents({"paperlib/core/a.py", "tests/b.py"}, {"paperlib/core/a.py"})
    ['tests/b.py: not of the tool']
    """
    tool = {name for name in committed if not name.startswith("paperlib/reproduction/")}
    faults: list[str] = []
    for name in sorted(names - tool):
        folder, _, about = name.partition("/")
        if not (folder.endswith(".dist-info") and about in ABOUT):
            faults.append(f"{name}: not of the tool")
    faults += [f"{name}: missing, see package-data" for name in sorted(tool - names)]
    for name in sorted(names & tool):
        if Path(name).suffix not in KINDS:
            faults.append(f"{name}: a kind of file that the tool has none of")
    return faults


def try_wheel(wheel: Path, tests: Path, python: str) -> None:
    """Install a wheel in a new environment of one Python, and run tests there in a folder of their
    own.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(tests, folder / "public")
        call(UV, "venv", "--quiet", "--no-project", "--python", python, str(folder / "env"))
        interpreter = str(folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
        for extra in EXTRAS:
            asked = f"{wheel}[{extra}]" if extra else str(wheel)
            install = [UV, "pip", "install", "--quiet", "--python", interpreter]
            call(*install, asked, "pytest", cwd=folder)
            print(f"tests/public on {python}, with {extra or 'no'} extra:", flush=True)
            pytest = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "public"]
            call(interpreter, *pytest, cwd=folder)


def check_tag(version: str) -> None:
    """Raise ReleaseError where a version is not ready to be tagged."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    fragments = [path for path in (ROOT / "changes").glob("*.md") if path.name != "README.md"]
    reasons = {
        "there are changes that are not committed": bool(git("status", "--porcelain")),
        "changes/ has lines that are not in CHANGELOG.md: make changelog": bool(fragments),
        f"CHANGELOG.md has no dated section {version}": not has_section(changelog, version),
        f"the tag v{version} exists": bool(git("tag", "--list", f"v{version}")),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ReleaseError(f"no tag: {reason}")


def release(pythons: Sequence[str], tag: bool) -> None:
    """Build, print sizes, check what the wheel holds, try it on each Python, and tag if asked."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name)
        unpack_commit(source)
        version = version_in((source / "paperlib" / "__init__.py").read_text(encoding="utf-8"))
        files = build(source)
        for path in files:
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes", flush=True)
        check_contents(files[-1], source)
        for python in pythons:
            try_wheel(files[-1], source / "tests" / "public", python)
    if tag:
        check_tag(version)
        call("git", "tag", "--annotate", f"v{version}", "--message", f"Release {version}")
        print(f"tagged v{version}; nothing was pushed")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Build a release and try it.")
    parser.add_argument("--python", action="append", metavar="PYTHON", help="a Python to try on")
    parser.add_argument("--tag", action="store_true", help="tag the last commit afterwards")
    parser.add_argument("--version", action="store_true", help="print the version and end")
    asked = parser.parse_args()
    try:
        if asked.version:
            print(version_in((ROOT / "paperlib" / "__init__.py").read_text(encoding="utf-8")))
        else:
            release(asked.python or [sys.executable], asked.tag)
    except ReleaseError as error:
        sys.exit(f"release: {error}")


if __name__ == "__main__":
    main()
