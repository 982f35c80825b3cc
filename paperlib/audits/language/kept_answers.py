"""Answers of a model, each kept under the hash of its prompt, so that a killed run goes on."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import SoftFileLease, Timeout

from paperlib.io.files import config_hash, output_error, write_text

_OTHER_FILE = "name another file (--answers)"
_ANOTHER_RUN = 2.0  # seconds to wait for the end of another run, or to see that it died


class KeptAnswers:
    """Answers to a list of prompts in a file of JSON lines; only those that it lacks are asked for.

    Its ``first`` line holds ``settings`` and ``notes``. Each further line is an answer, with a hash
    of settings, prompt and number of the try, and a checksum.

    Args:
        settings: What every answer depends on, in words and hashes.
        prompts: All prompts, each as often as it is to be answered.
        notes: What a new file also says, such as the date.

    Raises:
        ValueError: The file is none of kept answers, is one of other settings or prompts, or was
            changed; it stays as it is.
    """

    def __init__(
        self, path: Path, settings: Mapping[str, str], prompts: Sequence[str], **notes: str
    ) -> None:
        """Read the answers that the file at ``path`` holds, if it is there."""
        self._path = path
        self._settings = dict(settings)
        self._keys = self._all_keys(prompts)
        self._whole = 0  # bytes of the file that are whole lines
        self.answers: dict[str, str] = {}
        self.first: dict[str, Any] = {**settings, **notes}
        self._read()

    @property
    def left(self) -> int:
        """The number of answers that the file lacks."""
        return len(self._keys) - len(self.answers)

    @contextmanager
    def through(self, ask: Callable[[str], str]) -> Iterator[Callable[[str], str]]:
        """``ask``, but for answers that the file holds; no other run asks for them meanwhile.

        Raises:
            ValueError: Another run is asking.
            OutputError: An answer cannot be kept, such as on a full disk.
        """
        asked: Counter[str] = Counter()

        def complete(prompt: str) -> str:
            """The kept answer of a prompt, or a new one, which is kept; a prompt that is asked
            again has another answer.
            """
            key = self._key(prompt, asked[prompt])
            asked[prompt] += 1
            if key not in self.answers:
                answer = ask(prompt)
                self._keep(key, answer)
                self.answers[key] = answer
            return self.answers[key]

        if not self.left:  # nothing is written
            yield complete
            return
        with self._alone():
            self._read()  # what another run has added since
            if self._path.exists():
                os.truncate(self._path, self._whole)  # a killed run leaves a part of a line
            yield complete

    def _all_keys(self, prompts: Sequence[str]) -> set[str]:
        """A key for each prompt and each time that it is asked, the second time another one."""
        times: Counter[str] = Counter()
        keys: set[str] = set()
        for prompt in prompts:
            keys.add(self._key(prompt, times[prompt]))
            times[prompt] += 1
        return keys

    def _key(self, prompt: str, number: int) -> str:
        """Sixteen digits of a hash of the settings, a prompt, and the tries before."""
        return config_hash({**self._settings, "prompt": prompt, "try": number})[:16]

    def _read(self) -> None:
        """Take the answers of the file, if there is one, and what its first line says; a part of a
        line at its end, as a killed run leaves it, is not read.

        Raises:
            ValueError: A file of something else, of other settings or prompts, or changed.
        """
        if not self._path.exists():
            return
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        try:
            first, *lines = [json.loads(line) for line in whole.splitlines()]
            other = [name for name, value in self._settings.items() if first[name] != value]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise ValueError(f"{self._path}: holds no kept answers; {_OTHER_FILE}") from None
        if other:
            what = " and another ".join(other)
            raise ValueError(f"{self._path}: holds answers with another {what}; {_OTHER_FILE}")
        self.first = first
        self._whole = len(whole)
        for number, line in enumerate(lines, 2):
            self._add(line, number)

    def _add(self, line: Any, number: int) -> None:
        """Take the answer of a line of the file; a ValueError where it is none of this run, or was
        changed. ``number`` counts lines from 1.
        """
        key = line.get("prompt") if isinstance(line, dict) else None
        if key not in self._keys or line != _line(key, line.get("answer")):
            raise ValueError(
                f"{self._path}: line {number} is no answer to a prompt of this run, or was "
                f"changed; {_OTHER_FILE}"
            )
        if self.answers.setdefault(key, line["answer"]) != line["answer"]:
            raise ValueError(
                f"{self._path}: line {number} is a second answer to one prompt; {_OTHER_FILE}"
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Within, no other run adds to the file.

        Raises:
            ValueError: Another run holds it for two seconds or more.
            OutputError: The file beside it that says so cannot be written.
        """
        path = self._path.with_name(f"{self._path.name}.lease")
        held = SoftFileLease(path, lease_duration=120.0, timeout=_ANOTHER_RUN)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held.acquire()
        except Timeout:
            raise ValueError(
                f"{self._path}: another run is asking for these answers; wait for its end, or "
                f"{_OTHER_FILE} (after the crash of a machine, delete {path})"
            ) from None
        except OSError as error:
            raise output_error(self._path, error) from error
        try:
            yield
        finally:
            held.release()

    def _keep(self, key: str, answer: str) -> None:
        """Add an answer to the file, whose first line is written with the first answer; an
        OutputError where that fails, such as on a full disk.
        """
        text = json.dumps(_line(key, answer)) + "\n"
        if not self._path.exists():
            write_text(self._path, json.dumps(self.first) + "\n" + text)
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise output_error(self._path, error) from error


def _line(key: str, answer: Any) -> dict[str, Any]:
    """An answer as a line of the file: key, answer and a checksum of both."""
    content = {"prompt": key, "answer": str(answer)}
    return {**content, "sha256": config_hash(content)[:16]}
