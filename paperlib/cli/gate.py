"""The end of every audit: what is printed and written, and the exit code of its gate."""

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from paperlib.cli import options
from paperlib.core.visible import visible_lines, visible_text

if TYPE_CHECKING:
    from paperlib.audits.document import AuditDocument
    from paperlib.report.audit.about import About

FAILED_GATE = 3

_BLOCK = re.compile(r"<script[^>]*\bid=[\"']audit-result[\"'][^>]*>(.*?)</script>", re.DOTALL)
_SUFFIX = re.compile(r"(?<=.)\.[^.]+(\.(gz|bz2|xz|zst))?$", re.IGNORECASE)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What to do with the results of an audit; the options that all commands of audits share.

    Attributes:
        claimed_epsilon: What the training promises, nats; None without a promise.
        fail_above: The limit of the gate, nats; None without a gate.
        junit: Where the outcome is written as JUnit XML, or None.
        about: File of facts about the model, for the report, or None.
        questions: Public texts whose questions the report answers.
        output: Path of the report; None for one by the name of the input.
        as_json: Print JSON, and write a report only with ``output``.
    """

    claimed_epsilon: float | None = None
    fail_above: float | None = None
    junit: Path | None = None
    about: Path | None = None
    questions: Sequence[str] = ()
    output: Path | None = None
    as_json: bool = False

    def checked(self, *inputs: str | None) -> "About":
        """What the file of --about says, read before the audit.

        Raises:
            ValueError: An output that is an input or another output, or a report that would lie in
                a folder that is an input; and what `read_about` refuses.
        """
        from paperlib.report.audit.about import About, read_about

        paths = [Path(name) for name in inputs if name]
        self._check_outputs(paths)
        self._check_folders(paths)
        return About() if self.about is None else read_about(self.about)

    def _check_outputs(self, inputs: Sequence[Path]) -> None:
        """Refuse (ValueError) an output that is an input, or another output."""
        taken = {path.resolve() for path in inputs}
        if self.about is not None:
            taken.add(self.about.resolve())
        for option, path in (("--output", self.output), ("--junit", self.junit)):
            if path is None:
                continue
            if path.resolve() in taken:
                raise ValueError(
                    f"{option}: {path} is the input, or another output; name another file"
                )
            taken.add(path.resolve())

    def _check_folders(self, inputs: Sequence[Path]) -> None:
        """Refuse (ValueError) a report in a folder that is an input: it would be read with the next
        audit.
        """
        if self.as_json:
            return
        report = (self.output or Path("report.html")).resolve()
        for folder in inputs:
            if folder.is_dir() and report.is_relative_to(folder.resolve()):
                raise ValueError(
                    f"--output: the report would be a part of {folder}; name a place outside of it"
                )

    def parts(
        self,
        about_file: "About",
        files: dict[str, str],
        inputs: dict[str, str] | None = None,
        **facts: object,
    ) -> dict[str, Any]:
        """Fields of a document that every audit has, by the names of the arguments of its
        ``document``: facts, inputs with their checksums, about, claimed_epsilon and questions.

        ``about_file`` is what `checked` returns, ``files`` are paths by heading, ``inputs`` further
        inputs by name, and ``facts`` what else the report says of the audit.
        """
        from paperlib.audits.document import checksums, report_facts

        return {
            "facts": {**report_facts(files, **facts), "Command": command_line()},
            "inputs": {**checksums(files.values()), **(inputs or {})},
            "about": about_file,
            "claimed_epsilon": self.claimed_epsilon,
            "questions": tuple(self.questions),
        }

    def parts_of_scores(
        self, about_file: "About", source: dict[str, str], inputs: dict[str, str]
    ) -> dict[str, Any]:
        """Fields of the document of an audit of scores: facts, inputs, about, claimed_epsilon and
        questions.

        ``about_file`` is what `checked` returns, ``source`` says by heading where the scores come
        from, and ``inputs`` has the SHA-256 of each file by its name.
        """
        from paperlib.report.provenance import report_conditions

        sums = {f"SHA-256 of {name}": digest for name, digest in inputs.items()}
        made = {"Command": command_line(), **report_conditions("paperlib", "numpy", "scipy")}
        return {
            "facts": {**source, **sums, **made},
            "inputs": inputs,
            "about": about_file,
            "claimed_epsilon": self.claimed_epsilon,
            "questions": tuple(self.questions),
        }

    def deliver(self, document: "AuditDocument", file: str, text: Sequence[str]) -> int:
        """Write the report on ``file``, print the paragraphs ``text`` or JSON, and judge the limit.

        Returns the exit code of the gate, as `judge`. Raises OutputError where report or JUnit file
        cannot be written.
        """
        from paperlib.io.files import canonical_json

        name = report_name(file)
        report = report_path(self.output, name, as_json=self.as_json, inputs=dict(document.inputs))
        if report is not None:
            document.write(report)
        if self.as_json:
            print(canonical_json(document.to_dict(), indent=1, is_ascii=True))
        else:
            paragraphs = [*text, _next_steps(document)]
            # Names of files, columns and records are other people's text.
            print(visible_lines("\n\n".join(filter(None, paragraphs))) + "\n")
            print(visible_text(f"Report: {report}{self._moved(report, name)}"))
        answer, epsilon, ceiling = document.judged(self.fail_above)
        lines = [answer.headline, answer.claim]
        lines += [f"Warning: {warning}" for warning in document.answer_warnings]
        return self.judge(name, lines, epsilon=epsilon, ceiling=ceiling)

    def _moved(self, report: Path | None, name: str) -> str:
        """A remark where the report's usual name is taken by that of other data; else nothing."""
        usual = f"{name}-audit.html"
        if self.output is not None or report is None or report.name == usual:
            return ""
        return f" ({usual} is the report of other data)"

    def judge(
        self, name: str, lines: Sequence[str], *, epsilon: float | None, ceiling: float | None
    ) -> int:
        """The exit code: 3 where the gate is not passed, else 0; writes the file of --junit.

        ``name`` and ``lines`` are those of the test case, ``epsilon`` (nats) is None without an
        answer, ``ceiling`` is the largest epsilon that could have been shown.
        """
        code = 0
        verdict = ""
        if self.fail_above is not None:
            code, verdict = _judged(epsilon, self.fail_above, ceiling)
        if self.junit is not None:
            _write_junit(self.junit, name, epsilon, lines, failure=verdict if code else "")
        if verdict:
            print(f"gate {verdict}", file=sys.stderr)
        return code


@dataclass(frozen=True)
class ModelLoading:
    """How a language model is loaded: in which precision, and on which device."""

    dtype: options.Dtype = "auto"
    device: str = ""

    def load(self, name: str) -> tuple[Any, Any]:
        """The model of this name or folder, and its tokenizer."""
        from paperlib.models.language import load_language_model

        return load_language_model(name, dtype=self.dtype, device=self.device or None)


def _next_steps(document: "AuditDocument") -> str:
    """What to do next by the verdict, a line each; empty where it names nothing."""
    steps = document.verdict.next_steps
    if not steps:
        return ""
    return "\n".join(["Next:", *(f"  - {step}" for step in steps)])


def command_line() -> str:
    """The command as it was called."""
    return shlex.join(["paperlib", *sys.argv[1:]])


def _judged(epsilon: float | None, limit: float, ceiling: float | None) -> tuple[int, str]:
    """The exit code of a gate with this limit, and what is said of it. Only an audit that could
    have failed passes: not one whose ``ceiling``, the largest epsilon it could show, is not above
    the limit.

    All three are nats; ``epsilon`` is None without an answer, ``ceiling`` where it is not known.
    """
    if epsilon is None:
        return FAILED_GATE, "failed: the audit gives no answer; see its warnings"
    if epsilon > limit:
        return FAILED_GATE, f"failed: epsilon {_shown(epsilon, limit)} is above {limit:g}"
    if ceiling is not None and ceiling <= limit:
        return FAILED_GATE, (
            "failed: the audit gives no answer, as so few examples can show at most epsilon "
            f"{ceiling:.3f}, which is not above {limit:g}; bring more examples"
        )
    return 0, f"passed: epsilon {_shown(epsilon, limit)} is not above {limit:g}"


def _shown(epsilon: float, limit: float) -> str:
    """A lower bound, rounded down to three decimals; all its digits where three would not show
    that it is above the limit.
    """
    from paperlib.core import round_down

    short = round_down(epsilon)
    return f"{epsilon!r}" if short <= limit < epsilon else f"{short:.3f}"


def _write_junit(
    path: Path, name: str, epsilon: float | None, lines: Sequence[str], *, failure: str
) -> None:
    """Write one test suite with one test case, ``name``, as test runners do, with ``lines`` as its
    text.

    The case fails with ``failure``, the verdict of the gate, "" for none; without it and without an
    ``epsilon`` it is skipped. Raises OutputError where the file cannot be written.
    """
    from paperlib.io.files import write_text

    skipped = epsilon is None and not failure
    counts = {
        "tests": "1",
        "failures": str(int(bool(failure))),
        "errors": "0",
        "skipped": str(int(skipped)),
    }
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", {"name": "paperlib", **counts})
    case = ElementTree.SubElement(
        suite, "testcase", {"classname": "paperlib.audit", "name": _xml(name)}
    )
    text = _xml("\n".join(line for line in lines if line))
    if failure:
        ElementTree.SubElement(case, "failure", {"message": _xml(f"gate {failure}")}).text = text
    elif skipped:
        ElementTree.SubElement(case, "skipped", {"message": "the audit gives no answer"})
    if not failure:
        ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    write_text(path, f"<?xml version='1.0' encoding='utf-8'?>\n{body}\n")


def _xml(text: str) -> str:
    r"""Text that XML can hold: other characters are written as \x1b."""
    return _NOT_XML.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def report_name(file: str) -> str:
    """The name of a report: that of the file it is about, without the ending alone."""
    return "stdin" if file == "-" else _SUFFIX.sub("", Path(file).name or Path(file).resolve().name)


def report_path(
    output: Path | None, name: str, *, as_json: bool, inputs: Mapping[str, str]
) -> Path | None:
    """Where the report goes; None for no report, with ``as_json`` and no ``output``.

    ``output`` is the path of --output, ``name`` that of `report_name`, ``inputs`` the SHA-256 of
    each input by its name. Without an output it is NAME-audit.html, or the first of NAME-audit-2,
    -3, ... that is free or is the report of the same inputs: no report of other data is replaced.
    """
    if output is not None or as_json:
        return output
    path = Path(f"{name}-audit.html")
    for number in count(2):
        if not path.exists() or (inputs and _inputs_of(path) == inputs):
            break
        path = Path(f"{name}-audit-{number}.html")
    return path


def _inputs_of(report: Path) -> object:
    """The inputs that a report names in its JSON, checksums by name; None where it has none that
    can be read.
    """
    try:
        block = _BLOCK.search(report.read_text(encoding="utf-8", errors="replace"))
        content = json.loads(block[1]) if block else None
    except (OSError, ValueError):
        return None
    return content.get("inputs") if isinstance(content, dict) else None
