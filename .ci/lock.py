"""Write requirements.lock and environment.yml from the output of ``pip freeze`` on standard
input.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CUDA = re.compile(r"(nvidia|cuda)-|triton==")  # wheels that exist for one platform only
CUDA_MARKER = 'sys_platform == "linux" and platform_machine == "x86_64"'
# What `pip freeze` on Python 3.11 leaves out: build tools, and papermill's needs on Python 3.12.
LEFT_OUT = ["setuptools==81.0.0", "wheel==0.48.0"] + [
    f'{pin} ; python_version == "3.12"'
    for pin in (
        "aiohappyeyeballs==2.7.1",
        "aiohttp==3.14.5",
        "aiosignal==1.4.0",
        "frozenlist==1.8.0",
        "multidict==7.2.1",
        "propcache==0.5.4",
        "yarl==1.25.1",
    )
]
HEADER = (
    "# Every version this project was tested with, Python 3.11 to 3.13. Written by `make lock`.\n"
)


def pins(frozen: str) -> list[str]:
    """The ``name==version`` lines of a freeze, CUDA wheels limited to the platform that has them.

    >>> pins("-e ./x\\nnumpy==2.4.6\\ntriton==3.7.1")
    ['numpy==2.4.6', 'triton==3.7.1 ; sys_platform == "linux" and platform_machine == "x86_64"']
    """
    lines = [
        line.strip() for line in frozen.splitlines() if re.fullmatch(r"[\w.-]+==\S+", line.strip())
    ]
    return [f"{line} ; {CUDA_MARKER}" if CUDA.match(line) else line for line in lines]


def environment(locked: list[str]) -> str:
    """The conda environment with the same versions as ``locked``."""
    entries = "".join(f"      - '{line}'\n" for line in locked)
    return (
        HEADER + "name: paperlib\nchannels:\n  - conda-forge\ndependencies:\n"
        "  - python>=3.11,<3.14\n  - pip\n  - pip:\n" + entries + "      - -e .\n"
    )


if __name__ == "__main__":
    locked = pins(sys.stdin.read())
    if not locked:
        sys.exit("nothing to lock: expected the output of `pip freeze` on standard input")
    locked = sorted(locked + LEFT_OUT, key=str.lower)
    (ROOT / "requirements.lock").write_text(HEADER + "\n".join(locked) + "\n")
    (ROOT / "environment.yml").write_text(environment(locked))
