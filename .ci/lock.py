"""Write requirements.lock and environment.yml from pyproject.toml, with uv: ``make lock``.

The lock has every file's hash. It is resolved at once for all platforms that ``tool.uv`` of
pyproject.toml names; a line that is for some of them says so in a marker.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
OLDEST_PYTHON = "3.11.5"
# `mst` and `peers` bring JAX: the book and the tests do without, and compare more with it.
EXTRAS = ("all", "mst", "peers")


def header(platforms: list[str]) -> str:
    """What stands above the pins: where they were resolved for, and by what."""
    lines = [
        "# Every version this project was tested with, Python 3.11 to 3.13.",
        "# Written by `make lock`.",
        "# Resolved for these platforms:",
        *(f"#   {platform}" for platform in platforms),
    ]
    return "\n".join(lines) + "\n"


def resolve() -> str:
    """The lines of uv's universal resolution; versions in requirements.lock stay as they are."""
    command = [str(Path(sys.executable).parent / "uv"), "pip", "compile", "pyproject.toml"]
    command += ["--universal", "--generate-hashes", "--no-annotate", "--no-header", "--quiet"]
    command += ["--python-version", OLDEST_PYTHON, "--output-file", str(LOCK)]
    for extra in EXTRAS:
        command += ["--extra", extra]
    subprocess.run(command, cwd=ROOT, check=True)
    return LOCK.read_text(encoding="utf-8")


def pins(lock: str) -> list[str]:
    r"""The lines of a lock without comments and hashes.

    >>> pins("# written\nnumpy==2.4.6 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n")
    ['numpy==2.4.6']
    """
    found = re.findall(r"^([A-Za-z0-9].*?)\s*\\?$", lock, re.MULTILINE)
    return [line for line in found if "==" in line]


def environment(lock: str, first_lines: str) -> str:
    """The conda environment with the same versions; conda hands no hashes to pip."""
    entries = "".join(f'      - "{line}"\n' for line in pins(lock))
    return (
        first_lines + "name: paperlib\nchannels:\n  - conda-forge\ndependencies:\n"
        f"  - python>={OLDEST_PYTHON},<3.14\n  - pip\n  - pip:\n" + entries + "      - -e .\n"
    )


def main() -> None:
    """Resolve, then write both files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    first_lines = header(project["tool"]["uv"]["required-environments"])
    try:
        lock = resolve()
    except subprocess.CalledProcessError:
        sys.exit("uv found no versions: correct what it names above; both files are as they were")
    LOCK.write_text(first_lines + lock, encoding="utf-8")
    (ROOT / "environment.yml").write_text(environment(lock, first_lines), encoding="utf-8")


if __name__ == "__main__":
    main()
