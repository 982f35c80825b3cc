"""One set of versions: what pyproject.toml asks for, the lock, and the conda environment agree."""

import ast
import re
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# One entry is a pin and, in lines that are continued, its hashes.
ENTRIES = (
    re.sub(r"^#.*\n", "", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    .replace("\\\n", "")
    .splitlines()
)
LOCK = [re.sub(r"\s+--hash=\S+", "", entry).strip() for entry in ENTRIES]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())
PINS = list(map(Requirement, LOCK))
LOCKED = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in PINS}
EXTRAS = PROJECT["optional-dependencies"]
INSTALLED = [
    *EXTRAS["all"][0].removeprefix("leakbound[").removesuffix("]").split(","),
    "mst",
    "peers",
]
ASKED = PROJECT["dependencies"] + [line for name in INSTALLED for line in EXTRAS[name]]


def test_every_file_of_the_lock_has_a_hash():
    hashed = re.compile(r"[^\s]+( ; [^-]+)?(\s+--hash=sha256:[0-9a-f]{64})+")
    assert len(ENTRIES) > 200
    assert [entry for entry in ENTRIES if not hashed.fullmatch(entry.strip())] == []


def test_only_the_extras_of_mst_and_peers_bring_jax():
    """What is asked for without them, with all that it needs, as it is installed here."""
    without = set(EXTRAS) - {"mst", "peers", "int8"}
    waiting = [line for name in without for line in EXTRAS[name]] + PROJECT["dependencies"]
    needed: set[str] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name in needed or name == PROJECT["name"]:
            continue
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed.add(name)
        with suppress(PackageNotFoundError):
            waiting += distribution(requirement.name).requires or []
    assert {"torch", "scipy", "transformers"} <= needed
    assert not needed & {"jax", "jaxlib"}


def test_lock_pins_exact_versions_that_satisfy_pyproject_and_conda_has_them():
    pin = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+( ; .+)?")
    assert [line for line in LOCK if not pin.fullmatch(line)] == []
    asked = map(Requirement, ASKED)
    assert [
        one for one in asked if not one.specifier.contains(LOCKED[canonicalize_name(one.name)])
    ] == []
    (from_pip,) = [entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    assert from_pip == [*LOCK, "-e ."]
    (python,) = [entry for entry in ENVIRONMENT["dependencies"] if str(entry).startswith("python")]
    assert python.removeprefix("python").startswith(PROJECT["requires-python"])
    running = ".".join(map(str, sys.version_info[:3]))
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(running)


def imported_packages() -> set[str]:
    """First names of everything the package imports that is neither Python's own nor this
    package.
    """
    found: set[str] = set()
    for path in (ROOT / "paperlib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"paperlib"}


def test_every_import_of_the_package_is_asked_for():
    optional = [line for lines in EXTRAS.values() for line in lines]
    asked = {canonicalize_name(Requirement(line).name) for line in [*ASKED, *optional]}
    offered = packages_distributions()
    for name in imported_packages():
        assert asked & {
            canonicalize_name(distribution) for distribution in offered.get(name, [name])
        }, name
