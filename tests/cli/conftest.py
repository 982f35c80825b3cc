"""The command in this process."""

import json
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from paperlib import cli
from paperlib.report.audit.about import result_schema

BOOK = Path(__file__).parents[2] / "book"


class Command:
    """`paperlib`, or one of its commands, with words or one line of them: exit code, output,
    errors.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *begin: str
    ):
        self._parts, self._begin = (monkeypatch, capsys), begin

    def of(self, *begin: str) -> "Command":
        return Command(*self._parts, *begin)

    def __call__(self, *words: str) -> tuple[int, str, str]:
        monkeypatch, capsys = self._parts
        monkeypatch.setattr("sys.argv", ["paperlib", *self._begin, *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert isinstance(stop.value.code, int)
        return stop.value.code, *capsys.readouterr()

    def line(self, words: str) -> tuple[int, str, str]:
        return self(*shlex.split(words))

    def document(self, words: str, code: int = 0) -> dict[str, Any]:
        """The JSON that it prints, checked by the schema of results."""
        found, out, error = self(*shlex.split(words), "--json")
        assert found == code, error
        content = json.loads(out)
        jsonschema.validate(content, result_schema())
        return content

    def refuses(self, words: str, message: str, *, lines: int = 1) -> None:
        """One line with the message, in which `.*` stands for any words; exit code 2, and no file
        is written.

        The line is the last of so many, where others say what was done before.
        """
        before = sorted(Path().rglob("*"))
        code, out, error = self(*shlex.split(words))
        assert (code, out, error.count("\n")) == (2, "", lines), error
        *before_it, line = error[:-1].split("\n")
        assert line.rpartition("\r")[2].startswith("paperlib: "), "a bar may stand before it"
        assert not any(one.startswith("paperlib: ") for one in before_it)
        assert re.search(re.escape(message).replace(r"\.\*", ".*"), line), error
        assert sorted(Path().rglob("*")) == before


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], few_simulations: None
) -> Iterator[Command]:
    """The command; the signals that it sets are set back."""
    before = signal.getsignal(signal.SIGTERM)
    yield Command(monkeypatch, capsys)
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, as the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_order(out: str, *parts: str) -> None:
    """The output has these parts, one behind the other."""
    places = [out.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page of the book, without the word paperlib of a command.

    A line that ends in a backslash goes on in the next.
    """
    text = (BOOK / page).read_text(encoding="utf-8").replace("\\\n", "")
    return re.findall(rf"```{language}\n(?:paperlib )?(.*?)\n?```", text, re.DOTALL)
