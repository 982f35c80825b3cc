"""The end of every audit: what is printed and written, and the exit code of its gate."""

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from paperlib.audits import AuditDocument
    from paperlib.report import About

FAILED_GATE = 3

_BLOCK = re.compile(r"<script[^>]*\bid=[\"']audit-result[\"'][^>]*>(.*?)</script>", re.DOTALL)
_SUFFIX = re.compile(r"(?<=.)\.[^.]+(\.(gz|bz2|xz|zst))?$", re.IGNORECASE)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What to do with the results of an audit; the options that all commands of audits share."""

    claimed_epsilon: float | None
    fail_above: float | None
    junit: Path | None
    about: Path | None
    output: Path | None
    as_json: bool

    def checked(self, *inputs: str | None) -> "About":
        """What the file of --about says, before the audit begins.

        Raises:
            ValueError: It cannot be used, or an output is one of the inputs.
        """
        from paperlib.report import About, read_about

        for option, path in (("--output", self.output), ("--junit", self.junit)):
            if path is not None and any(path.resolve() == Path(one).resolve() for one in inputs if one):
                raise ValueError(f"{option}: {path} is the input; name another file")
        return About() if self.about is None else read_about(self.about)


def command_line() -> str:
    """The command as it was called."""
    return shlex.join(["paperlib", *sys.argv[1:]])


def deliver(document: "AuditDocument", file: str, wishes: Wishes, text: Sequence[str]) -> int:
    """Write the report, print the answer or JSON, and judge the limit on epsilon: the exit code.

    Args:
        document: The audit.
        file: What was audited; it names the report.
        wishes: What to print and write.
        text: Paragraphs that are printed; empty ones are left out.

    Raises:
        OutputError: The report or the JUnit file cannot be written.
    """
    name = report_name(file)
    report = report_path(wishes.output, name, as_json=wishes.as_json, inputs=dict(document.inputs))
    if report is not None:
        document.write(report)
    if wishes.as_json:
        print(json.dumps(document.to_dict(), indent=1, sort_keys=True, ensure_ascii=False))
    else:
        steps = [f"  - {step}" for step in document.verdict.next_steps]
        print("\n\n".join(filter(None, [*text, "\n".join(["Next:", *steps]) if steps else ""])) + "\n")
        usual = f"{name}-audit.html"
        moved = wishes.output is None and report is not None and report.name != usual
        print(f"Report: {report}{f' ({usual} is the report of other data)' if moved else ''}")
    answer, epsilon, ceiling = document.judged(wishes.fail_above)
    return finish(
        name=name, epsilon=epsilon, headline=answer.headline, claim=answer.claim,
        warnings=document.answer_warnings, fail_above=wishes.fail_above, junit=wishes.junit, ceiling=ceiling,
    )  # fmt: skip


def finish(
    *,
    name: str,
    epsilon: float | None,
    headline: str,
    claim: str,
    warnings: Sequence[str],
    fail_above: float | None,
    junit: Path | None,
    ceiling: float | None = None,
) -> int:
    """The exit code of an audit: 3 where its gate is not passed, else 0; one line on stderr says which.

    The gate is passed only by an audit that could have failed it. So there is no pass without a number, and
    none where so many examples could not have shown more than the limit.

    Args:
        name: Name of the audited data, for the JUnit file.
        epsilon: The main number, nats; None where the audit gives no answer, as with a reversed direction.
        headline: The main number in words.
        claim: What it supports.
        warnings: What weakens it.
        fail_above: Largest epsilon that passes, nats; None for no gate.
        junit: File for the outcome as JUnit XML, or None.
        ceiling: Largest epsilon that so many examples could have shown, nats; None where it is not known.

    Raises:
        OutputError: The JUnit file cannot be written.
    """
    failure = "" if fail_above is None else _failure(epsilon, fail_above, ceiling)
    if junit is not None:
        _write_junit(junit, name, epsilon, [headline, claim, *(f"Warning: {one}" for one in warnings)],
                     failure=failure)  # fmt: skip
    if fail_above is None:
        return 0
    print(f"gate {failure or _passed(epsilon, fail_above)}", file=sys.stderr)
    return FAILED_GATE if failure else 0


def _failure(epsilon: float | None, limit: float, ceiling: float | None) -> str:
    """Why a gate is not passed; empty for one that is."""
    if epsilon is None:
        return "failed: the audit gives no answer; see its warnings"
    if epsilon > limit:
        return f"failed: epsilon {_shown(epsilon, limit)} is above {limit:g}"
    if ceiling is not None and ceiling <= limit:
        return (
            f"failed: the audit gives no answer, as so few examples can show at most epsilon {ceiling:.3f}, "
            f"which is not above {limit:g}; bring more examples"
        )
    return ""


def _passed(epsilon: float | None, limit: float) -> str:
    assert epsilon is not None, "no gate is passed without a number"
    return f"passed: epsilon {_shown(epsilon, limit)} is not above {limit:g}"


def _shown(epsilon: float, limit: float) -> str:
    """A lower bound, rounded down; all its digits where fewer would not show that it is above the limit."""
    from paperlib.core import round_down

    short = round_down(epsilon)
    return f"{epsilon!r}" if short <= limit < epsilon else f"{short:.3f}"


def _write_junit(path: Path, name: str, epsilon: float | None, lines: Sequence[str], *, failure: str) -> None:
    """One test suite with one test case, as test runners write it; without answer and gate it is skipped."""
    from paperlib.io import write_text

    skipped = epsilon is None and not failure
    counts = {"tests": "1", "failures": str(int(bool(failure))), "errors": "0", "skipped": str(int(skipped))}
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", {"name": "paperlib", **counts})
    case = ElementTree.SubElement(suite, "testcase", {"classname": "paperlib.audit", "name": _xml(name)})
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
    return _NOT_XML.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def report_name(file: str) -> str:
    """The name of a report: that of the file it is about, without the ending alone.

    >>> report_name("a/my.model.v2.csv"), report_name("losses.csv.gz"), report_name("-")
    ('my.model.v2', 'losses', 'stdin')
    """
    return "stdin" if file == "-" else _SUFFIX.sub("", Path(file).name)


def report_path(
    given: Path | None, name: str, *, as_json: bool, inputs: Mapping[str, str] | None = None
) -> Path | None:
    """Where the report goes, or None for none; a report of other data stays where it is.

    Args:
        given: The path that was asked for; what stands there is replaced.
        name: The report is NAME-audit.html in this folder; where that is the report of other data,
            NAME-audit-2.html, and so on.
        as_json: Whether JSON is printed: then a report is written only to a given path.
        inputs: File name to SHA-256 of what was audited. A report is of the same data if the JSON in it
            (``<script id="audit-result">``) has the same checksums under ``inputs``; without them, no report
            is replaced.
    """
    if given is not None or as_json:
        return given
    paths = (Path(f"{name}-audit{'' if at == 1 else f'-{at}'}.html") for at in count(1))
    return next(path for path in paths if not path.exists() or (inputs and _made_from(path) == inputs))


def _made_from(report: Path) -> dict[str, str] | None:
    """File name to SHA-256 of the data of a report; None for a page that does not say it."""
    try:
        found = _BLOCK.search(report.read_text(encoding="utf-8", errors="replace"))
        content = json.loads(found[1]) if found else None
    except (OSError, ValueError):
        return None
    return content.get("inputs") if isinstance(content, dict) else None
