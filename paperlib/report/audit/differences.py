"""Where a page differs from the report that it should be, in plain words."""

import json
import math
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from paperlib.core.visible import visible_text

RESULT_BLOCK = "<script type='application/json' id='audit-result'>"
RECEIPT_BLOCK = "<script type='application/json' id='audit-receipt'>"
END_OF_BLOCK = "</script>"
_PICTURE = "<figure><img src='data:"
_HEADING = re.compile("<h[12]>([^<]+)</h[12]>")
_LARGEST = 1_000_000  # pairs of lines up to which lines are matched; above, all of them differ
_TEXT = 90  # characters of a line that are quoted


def block_of(page: str, start: str) -> str | None:
    """The text between ``start``, which is `RESULT_BLOCK` or `RECEIPT_BLOCK`, and the end of the
    block; None where the page does not hold exactly one such block.
    """
    pieces = page.split(start)
    if len(pieces) != 2:
        return None
    text, end, _ = pieces[1].partition(END_OF_BLOCK)
    return text if end else None


def page_differences(page: str, report: str, most: int = 5) -> list[str]:
    """A line for each of the first places in which a page differs from the report written anew.

    Everything is compared, what a browser does not show as well: a page that differs from the
    report in one character has a difference. In the block for programs the last digits of numbers
    may differ, since versions of the numeric libraries may round them otherwise.

    Args:
        page: What somebody brings, of any content.
        report: What `audit_report` writes.
        most: Largest number of places, 1 or more; a last line says that there are others.
    """
    page_lines, report_lines = page.split("\n"), report.split("\n")
    of_result: list[str] = []
    stated, expected = block_of(page, RESULT_BLOCK), block_of(report, RESULT_BLOCK)
    if stated is not None and expected is not None:
        of_result = result_differences(stated, expected)
        if not of_result:  # alike but for last digits: those of the report take their place
            whole = f"{RESULT_BLOCK}{expected}{END_OF_BLOCK}"
            page_lines = page.replace(f"{RESULT_BLOCK}{stated}{END_OF_BLOCK}", whole).split("\n")
    reported: list[str] = []
    for in_page, in_report in _unequal(page_lines, report_lines):
        for difference in _described(page_lines[in_page], report_lines, in_report, of_result):
            if len(reported) == most:
                return [*reported, "and more places"]
            reported.append(difference)
    return reported


def _unequal(lines: list[str], other: list[str]) -> Iterator[tuple[slice, slice]]:
    """Pairs of slices, of the first list and of the other one, in which the two differ, in order;
    one of the two may be empty.
    """
    # Equal lines at both ends need no matching, which takes time by the product of the lengths.
    start = 0
    shorter = min(len(lines), len(other))
    while start < shorter and lines[start] == other[start]:
        start += 1
    end = 0
    while end < shorter - start and lines[-1 - end] == other[-1 - end]:
        end += 1
    inner, other_inner = lines[start : len(lines) - end], other[start : len(other) - end]
    if len(inner) * len(other_inner) > _LARGEST:
        yield slice(start, start + len(inner)), slice(start, start + len(other_inner))
        return
    matcher = SequenceMatcher(None, inner, other_inner, autojunk=False)
    for tag, first, last, other_first, other_last in matcher.get_opcodes():
        if tag != "equal":
            yield (
                slice(start + first, start + last),
                slice(start + other_first, start + other_last),
            )


def _described(
    page_lines: list[str], report_lines: list[str], in_report: slice, of_result: list[str]
) -> Iterator[str]:
    """Say of each line in which page and report differ where it is, and what the page has there.

    Args:
        page_lines: The lines of the page that differ.
        report_lines: All lines of the report.
        in_report: Where in it the lines stand that the page should have.
        of_result: Differences of the block for programs, which take the place of its line.
    """
    for offset in range(max(len(page_lines), in_report.stop - in_report.start)):
        number = in_report.start + offset
        where = _place(report_lines, min(number, in_report.stop, len(report_lines) - 1))
        line = page_lines[offset] if offset < len(page_lines) else None
        anew = report_lines[number] if number < in_report.stop else None
        if of_result and anew is not None and anew.startswith(RESULT_BLOCK):
            for text in of_result:
                yield f"in the block for programs: {text}"
        else:
            yield f"{where}: {_change(line, anew)}"


def _place(report_lines: list[str], number: int) -> str:
    """The place of the line of the report with this number, in words: by the heading above it, in
    the style of the page, or at its top.
    """
    for above, line in enumerate(reversed(report_lines[: number + 1])):
        if above and line.endswith("</style>"):  # the line stands below the style
            break
        heading = _HEADING.search(line)
        if heading is not None:
            return f"under “{visible_text(heading[1], 60)}”"
        if line.startswith("<style>"):
            return "in the style of the page"
    return "at the top of the page"


def _change(line: str | None, anew: str | None) -> str:
    """What the page has: ``line`` in place of ``anew``, the line of the report. None says that page
    or report has no such line.
    """
    if anew is None:
        return f"the page also has “{_quoted(line or '', '')}”"
    if line is None:
        return f"the page lacks “{_quoted(anew, '')}”"
    if line.startswith(_PICTURE) and anew.startswith(_PICTURE):
        return "the page has another image"
    return f"the page has “{_quoted(line, anew)}”, the report “{_quoted(anew, line)}”"


def _quoted(line: str, other: str) -> str:
    """`_TEXT` characters of a line around the place from which it differs from ``other``; its first
    ones where ``other`` is "".
    """
    same = 0  # characters that both begin with
    while same < min(len(line), len(other)) and line[same] == other[same]:
        same += 1
    start = max(0, same - _TEXT // 3) if other else 0
    text = visible_text(line[start : start + _TEXT].strip())
    before = "…" if start else ""
    after = "…" if start + _TEXT < len(line) else ""
    return f"{before}{text}{after}"


def result_differences(stated: str, expected: str) -> list[str]:
    """A line for each field of a page's block for programs that is not the report's, numbers to
    eight digits; both as the text of the block.
    """
    content = parsed_result(stated)
    if content is None:
        return ["it is not written as a report writes it"]
    return list(_field_differences("", content, json.loads(expected)))


def parsed_result(text: str) -> dict[str, Any] | None:
    """The content of a block for programs; None where it is not as a report writes it, such as
    with a key that stands twice.
    """
    try:
        content = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        again = json.dumps(content, ensure_ascii=False, allow_nan=False, sort_keys=True)
    except (ValueError, RecursionError):
        return None
    is_same = again.replace("<", "\\u003c") == text
    return content if is_same and isinstance(content, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a ValueError where a key stands twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key stands twice")
    return content


def _no_number(name: str) -> float:
    """Refuse (ValueError) NaN and infinities, which are no JSON."""
    raise ValueError(f"{name} is no number")


def _field_differences(name: str, stated: Any, expected: Any) -> Iterator[str]:
    """A line for each value of JSON that differs, where ``name`` says in which field both stand,
    such as "audits[0].epsilon".
    """
    if isinstance(stated, dict) and isinstance(expected, dict):
        yield from _key_differences(name, stated, expected)
    elif isinstance(stated, list) and isinstance(expected, list) and len(stated) == len(expected):
        for index, (value, right) in enumerate(zip(stated, expected, strict=True)):
            yield from _field_differences(f"{name}[{index}]", value, right)
    elif not same_value(stated, expected):
        short, right = _short(stated), _short(expected)
        yield f"{visible_text(name, 60)} is {short}, and {right} in the report"


def _key_differences(name: str, stated: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """A line for each key of two objects that one of them lacks, or whose values differ."""
    for key in sorted({*stated, *expected}):
        inner = f"{name}.{key}" if name else key
        if key not in stated:
            yield f"{visible_text(inner, 60)}: not in the page"
        elif key not in expected:
            yield f"{visible_text(inner, 60)}: not in the report"
        else:
            yield from _field_differences(inner, stated[key], expected[key])


def same_value(stated: object, expected: object) -> bool:
    """Whether two values of JSON are equal and of the same type; floats to eight digits."""
    if type(stated) is not type(expected):
        return False
    if isinstance(stated, float) and isinstance(expected, float):
        return math.isclose(stated, expected, rel_tol=1e-8, abs_tol=1e-12)
    return stated == expected


def _short(value: object) -> str:
    """A value of JSON in a few characters."""
    return visible_text(json.dumps(value, ensure_ascii=False), 60)
