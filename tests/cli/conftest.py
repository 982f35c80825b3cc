"""The command in this process: exit code, output, errors."""

import signal
from collections.abc import Callable, Iterator

import pytest

from paperlib import cli

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """`paperlib` with words; the signals that it sets are set back."""
    before = signal.getsignal(signal.SIGTERM)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["paperlib", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert isinstance(stop.value.code, int)
        return stop.value.code, *capsys.readouterr()

    yield run
    signal.signal(signal.SIGTERM, before)
