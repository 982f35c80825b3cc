"""How many faults and attacks of each kind the tests try: the table of the book's page on security.

`python -m tests.security.tried` writes the table anew.
"""

import csv
import io
import math
import tomllib
from collections.abc import Callable, Collection, Sized
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KINDS = Path(__file__).with_name("tried.toml")
TABLE = ROOT / "book" / "security_tried.csv"


def altered_pages() -> dict[str, str]:
    """The altered copies of one receipt."""
    from tests.report.altered_receipts import Altered

    return Altered(receipt()).pages()


def malformed_receipts() -> dict[str, str]:
    """Receipts that hold something else than a receipt does."""
    from tests.report.test_altered_receipts import malformed

    return malformed(receipt())


def receipt() -> str:
    """The page of which the copies are."""
    from paperlib.audits import audit_losses
    from tests.report import test_altered_receipts as sealed

    audits = audit_losses(dict(enumerate(sealed.LOSSES)), coins=sealed.COINS, plan=sealed.PLAN)
    return audits.document(title="Audit of <scores> & more").html()


HERE: dict[str, Callable[[], Collection[str]]] = {
    "altered_pages": altered_pages,
    "malformed_receipts": malformed_receipts,
}
"""Cases that a test makes from a page."""


def count(reference: str) -> int:
    """How many cases a test tries: the product of its parameters, or the length of what it is "of".

    A ValueError names a test that is not there.
    """
    test, _, cases = reference.partition(" of ")
    function = named_test(test)
    if cases in HERE:
        return len(HERE[cases]())
    if cases:
        return len(getattr(import_module(function.__module__), cases))
    return math.prod(len(values) for values in parameters(function))


def named_test(test: str) -> Any:
    """The function of a test, by PATH::NAME; a ValueError names one that is not there."""
    path, _, name = test.partition("::")
    module = import_module(path.removesuffix(".py").replace("/", "."))
    function = getattr(module, name, None)
    if function is None:
        raise ValueError(f"{path}: no test {name}")
    return function


def parameters(function: Any) -> list[Sized]:
    """The lists of values that a test is repeated with."""
    marks = getattr(function, "pytestmark", [])
    return [mark.args[1] for mark in marks if mark.name == "parametrize"]


def kinds() -> list[dict[str, Any]]:
    """Each kind with its name and tests."""
    return tomllib.loads(KINDS.read_text(encoding="utf-8"))["kind"]


def table() -> str:
    """The table as CSV: kind, number of cases, and the files of the tests."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(["Kind", "Tried", "Tests"])
    total = 0
    for kind in kinds():
        tried = sum(count(test) for test in kind["tests"])
        files = dict.fromkeys(test.partition("::")[0] for test in kind["tests"])
        names = ", ".join(f"`{name.removeprefix('tests/')}`" for name in files)
        writer.writerow([kind["name"], f"{tried:,}", names])
        total += tried
    writer.writerow(["All", f"{total:,}", "in the folder `tests`"])
    return written.getvalue()


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
