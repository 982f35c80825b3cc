"""A small figure for each table and figure of the papers: our intervals, the range that is
claimed, and what the paper prints.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from paperlib.reproduction.exhibits import paper_table
from paperlib.reproduction.papers.verdict.contrasts import Contrast
from paperlib.reproduction.papers.verdict.outcome import Claim
from paperlib.reproduction.papers.verdict.records import SIGNS
from paperlib.reproduction.papers.verdict.status import JudgedTarget

_WIDTH, _EDGE = 340.0, 10.0  # of the drawing, in pixels
_HEADER, _ROW, _GAP = 18.0, 13.0, 10.0  # heights of a claim's name, of a row, and between claims
_LEGEND = 20.0  # height of the key
_MOST_ROWS = 4  # comparisons of a claim that are drawn
_TRIANGLE = 4.0  # half of the height of a printed number's mark
_INK, _RANGE = "#222222", "#0072b2"


@dataclass(frozen=True)
class _Lane:
    """A claim to draw: its comparisons nearest to an end of the range, and the printed numbers."""

    name: str
    rows: Sequence[Contrast]
    number: int  # of its comparisons, with those that are not drawn
    printed: Sequence[float]

    @property
    def height(self) -> float:
        """Of the whole lane, in pixels."""
        return _HEADER + _ROW * (len(self.rows) + bool(self.printed))

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest number to draw, with a margin to each side."""
        term = self.rows[0].term
        numbers = [term.at_least, term.at_most, *self.printed]
        for row in self.rows:
            numbers += [row.mean, row.low, row.high]
        finite = [number for number in numbers if math.isfinite(number)]
        low, high = min(finite), max(finite)
        margin = 0.12 * (high - low) or 0.5 * abs(high) or 1.0
        return low - margin, high + margin

    def x(self, value: float) -> float:
        """Where a value lies, in pixels; an infinite one at the end of the drawing."""
        low, high = self.ends
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return _EDGE + share * (_WIDTH - 2 * _EDGE)


def thumbnail_svg(entry: JudgedTarget) -> str:
    """The figure as SVG; empty for a target without a measured comparison."""
    lanes = _lanes(entry)
    if not lanes:
        return ""
    top = 2.0
    drawn: list[str] = []
    for lane in lanes:
        drawn += _lane(lane, top)
        top += lane.height + _GAP
    drawn.append(_legend(top, has_printed=any(lane.printed for lane in lanes)))
    height = top + _LEGEND
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" '
        f'width="{_WIDTH:g}" height="{height:g}" font-family="sans-serif" font-size="11" '
        f'fill="{_INK}">'
    )
    return "\n".join([start, *drawn, "</svg>"]) + "\n"


def thumbnail_alt(entry: JudgedTarget) -> str:
    """The figure in words; empty where there is none."""
    words: list[str] = []
    for lane in _lanes(entry):
        printed = ", ".join(f"{value:.3g}" for value in lane.printed[:_MOST_ROWS])
        beside = f", printed {printed}" if printed else ""
        nearest = lane.rows[0]
        limits = nearest.term.limits or "shown alone"
        words.append(f"{nearest}, claimed {limits}{beside}")
    if not words:
        return ""
    return f"{entry.rule.item}, {entry.outcome.word}: {'; '.join(words)}"


def _lanes(entry: JudgedTarget) -> list[_Lane]:
    """The claims of a target that have a measured comparison."""
    lanes: list[_Lane] = []
    for claim in entry.outcome.claims:
        rows = _nearest(claim)
        if rows and not claim.beside:
            printed = _printed(entry.rule.target, claim.name)
            name = f"{SIGNS[claim.word]} {claim.name}"
            lanes.append(_Lane(name, rows, len(claim.contrasts), printed))
    return lanes


def _nearest(claim: Claim) -> list[Contrast]:
    """The measured comparisons of a claim that lie furthest outside the range or nearest to its
    end.
    """
    measured = [contrast for contrast in claim.contrasts if math.isfinite(contrast.mean)]
    return sorted(measured, key=lambda contrast: contrast.margin)[:_MOST_ROWS]


def _printed(target: str, name: str) -> list[float]:
    """What the paper prints of a claim, in the measure of its rule; often nothing."""
    return list(_marks().get((target, name), []))


@cache
def _marks() -> dict[tuple[str, str], list[float]]:
    """Printed numbers by target and claim."""
    marks: dict[tuple[str, str], list[float]] = {}
    for row in paper_table("marks", as_printed=True).to_dict("records"):
        marks.setdefault((row["target"], row["name"]), []).append(float(row["value"]))
    return marks


def _lane(lane: _Lane, top: float) -> list[str]:
    """A claim as the elements of an SVG, from ``top`` (pixels) on: its name, the claimed range, our
    intervals and the printed numbers.
    """
    drawn = [f'<text x="{_EDGE:g}" y="{top + 12:g}">{html.escape(lane.name)}</text>']
    if lane.number > len(lane.rows):
        count = f"nearest {len(lane.rows)} of {lane.number}"
        drawn.append(
            f'<text x="{_WIDTH - _EDGE:g}" y="{top + 12:g}" text-anchor="end">{count}</text>'
        )
    drawn += _claimed_range(lane, top)
    y = top + _HEADER + _ROW / 2
    for row in lane.rows:
        if math.isfinite(row.low) and math.isfinite(row.high):
            drawn.append(
                f'<line x1="{lane.x(row.low):.1f}" x2="{lane.x(row.high):.1f}" y1="{y:g}" '
                f'y2="{y:g}" stroke="{_INK}" stroke-width="1.6"/>'
            )
        drawn.append(f'<circle cx="{lane.x(row.mean):.1f}" cy="{y:g}" r="3"/>')
        y += _ROW
    drawn += [_triangle(lane.x(value), y) for value in lane.printed]
    return drawn


def _claimed_range(lane: _Lane, top: float) -> list[str]:
    """The claimed range as a band, with a line and its number at each end that is finite; nothing
    where the range has no end. The lane begins at ``top``, in pixels.
    """
    term = lane.rows[0].term
    low, high = lane.x(term.at_least), lane.x(term.at_most)
    y, height = top + _HEADER, lane.height - _HEADER
    if not term.bounded:
        return []
    drawn = [
        f'<rect x="{low:.1f}" y="{y:g}" width="{max(high - low, 1.5):.1f}" height="{height:g}" '
        f'fill="{_RANGE}" fill-opacity="0.16"/>'
    ]
    for end in (term.at_least, term.at_most):
        if math.isfinite(end):
            x = lane.x(end)
            drawn.append(
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y:g}" y2="{y + height:g}" '
                f'stroke="{_RANGE}" stroke-dasharray="3 2"/>'
            )
            drawn.append(
                f'<text x="{x:.1f}" y="{y + height + 9:g}" font-size="9" '
                f'text-anchor="middle">{end:g}</text>'
            )
    return drawn


def _triangle(x: float, y: float) -> str:
    """The mark of a printed number, which no outcome has as its sign."""
    size = _TRIANGLE
    return (
        f'<path class="printed" d="M{x - size:.1f} {y + size:g} L{x:.1f} {y - size:g} '
        f'L{x + size:.1f} {y + size:g} Z" fill="none" stroke="{_INK}" stroke-width="1.4"/>'
    )


def _legend(top: float, *, has_printed: bool) -> str:
    """The key of the marks."""
    words = "● here, with interval   ▒ claimed"
    if has_printed:
        words += "   △ printed"
    return f'<text x="{_EDGE:g}" y="{top + 13:g}" font-size="10">{words}</text>'
