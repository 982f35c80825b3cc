"""Provenance: under which conditions a number was computed."""

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "paperlib",
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
    "pyarrow",
    "torch",
    "torchvision",
    "scikit-learn",
    "opacus",
    "transformers",
)
_ON_AN_INDEX = {"paperlib": "leakbound"}
"""Names under which packages are installed that have another name in our files."""


def provenance(
    *,
    root: Path,
    profile: str,
    parameters: Mapping[str, Any],
    seconds: float,
    data: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Conditions of one run of the checkout at ``root``, by name, as the records of a run keep
    them.

    Args:
        root: Folder of the checkout; outside of git, commit and dirty are None.
        profile, parameters, seconds: What ran, and how long.
        data: SHA-256 of each file that the run read, by its name.
    """
    commit = _answer("git", "-C", str(root), "rev-parse", "HEAD")
    changes = _answer("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    new = _answer(
        "git", "-C", str(root), "ls-files", "-o", "--exclude-standard", "paperlib", "notebooks"
    )
    return {
        "date": utc_now(),
        "commit": commit,
        "dirty": None if changes is None else bool(changes or new),
        "profile": profile,
        "parameters": dict(parameters),
        "seconds": round(seconds, 2),
        "python": platform.python_version(),
        "packages": _installed(PACKAGES),
        **hardware(),
        "data": dict(data or {}),
    }


def utc_now() -> str:
    """The date and time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _answer(*command: str) -> str | None:
    """What a command prints; None where there is no such command, or where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def package_version(name: str) -> str | None:
    """Version of an installed package, "paperlib" for this one; None for one that is not
    installed.
    """
    try:
        return metadata.version(_ON_AN_INDEX.get(name, name))
    except metadata.PackageNotFoundError:
        return None


def report_conditions(*packages: str) -> dict[str, str]:
    """Date, versions of Python and of ``packages``, and hardware: headings of a report, and
    text.
    """
    versions = [f"Python {platform.python_version()}"]
    versions += [f"{name} {version}" for name, version in _installed(packages).items()]
    machine = hardware()
    processor = f"{machine['cpu']}, {machine['cores']} cores"
    return {"Date": utc_now(), "Versions": ", ".join(versions), "Hardware": processor}


def _installed(packages: Iterable[str]) -> dict[str, str]:
    """Versions of the packages that are installed, by name."""
    versions = {name: package_version(name) for name in packages}
    return {name: version for name, version in versions.items() if version}


def hardware() -> dict[str, Any]:
    """Processor, cores this process may use, GPU (None without one) and operating system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    model = _model_name()
    cpu = platform.processor() or platform.machine() if model is None else model
    system = f"{platform.system()} {platform.machine()}"
    return {"cpu": cpu, "cores": cores, "gpu": gpu_name(), "system": system}


def _model_name() -> str | None:
    """Name of the processor as Linux tells it; None elsewhere, and where it tells none."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return None
    for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return None


def gpu_name() -> str | None:
    """Name and memory of the first NVIDIA GPU that is not hidden, asked from its driver; None
    without one.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
    if first in ("", "-1"):
        return None
    command = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    answer = _answer(*command, "-i", first) or _answer(*command)
    return answer.splitlines()[0] if answer else None


def describe(run: Mapping[str, Any]) -> list[str]:
    """A run's provenance, as `provenance` gives it, in three or four lines for a box on its
    page.
    """
    commit = str(run.get("commit") or "")[:12] or "unknown"
    changed = " with local changes" if run.get("dirty") else ""
    versions = ", ".join(f"{name} {version}" for name, version in run["packages"].items())
    data = ", ".join(f"{name} (SHA-256 {digest[:16]}…)" for name, digest in run["data"].items())
    head = f"Profile {run['profile']}; {run['date']}; {run['seconds']:.0f} s"
    lines = [
        f"{head}; commit {commit}{changed}",
        f"{run['cpu']}, {run['cores']} cores, {run['gpu'] or 'no GPU'}, {run['system']}",
        f"Python {run['python']}, {versions}",
    ]
    return [*lines, f"Data: {data}"] if data else lines
