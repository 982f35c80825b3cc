"""What the report of a planned audit says beyond its plan, its coins and its scores."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np

import paperlib
from paperlib.core.options import Questions
from paperlib.core.sealed import sealed_text
from paperlib.report.audit.about import About
from paperlib.report.provenance import package_version
from paperlib.words.audits.questions.texts import chosen

_ROOMS = (
    "core",
    "reading",
    "bounds",
    "words",
    "report",
    "audits",
)  # on which the text of a report depends
_SOURCES = (".py", ".j2", ".css", ".json")
_LIBRARIES = ("matplotlib", "numpy", "scipy")  # which draw and round
_VERSIONS = re.compile(r"[A-Za-z0-9 .,+()-]{1,300}")


@dataclass(frozen=True, kw_only=True)
class ReportWords:
    """Words of whoever wrote a report, and options that no plan names: nothing computes them.

    A report is a function of these, of plan, coins and scores, so that it can be written anew.

    Attributes:
        title, about, facts, inputs: As for `AuditDocument`.
        named: Whether the report names records by their ids, in place of numbers.
        groups: Group of each record, members first, None for one without; None for no groups.
        reading: Warnings: those of the reader of the file, then those that follow from the scores.
        seed: Seed of the splits of the further audits.
        questions: Names of the public texts whose questions the report answers.
        versions: What wrote the report, as `versions` says it.
    """

    title: str
    about: About
    facts: Mapping[str, str]
    inputs: Mapping[str, str]
    named: bool
    groups: tuple[str | None, ...] | None
    reading: tuple[str, ...]
    seed: int
    questions: tuple[Questions, ...] = ()
    versions: str = field(default_factory=lambda: versions())

    @property
    def text(self) -> str:
        """All of them as one text, from which `read_words` reads them."""
        content = {
            "title": self.title,
            "about": self.about.to_dict(),
            "facts": list(map(list, self.facts.items())),  # their order is that of the page
            "inputs": dict(self.inputs),
            "named": self.named,
            "groups": self.groups,
            "reading": self.reading,
            "seed": self.seed,
            "versions": self.versions,
        }
        if self.questions:  # reports did not always have them
            content["questions"] = self.questions
        return sealed_text(content)


def read_words(text: object) -> ReportWords | None:
    """The words that a text holds; None where it is not one that `ReportWords.text` gives."""
    if not isinstance(text, str):
        return None
    try:
        content = json.loads(text)
        words = ReportWords(
            title=content["title"],
            about=About(**content["about"]),
            facts=dict(content["facts"]),
            inputs=content["inputs"],
            named=content["named"],
            groups=None if content["groups"] is None else tuple(content["groups"]),
            reading=tuple(content["reading"]),
            seed=content["seed"],
            questions=chosen(content.get("questions", ())),
            versions=content["versions"],
        )
        is_whole = _types_are_right(words) and words.text == text
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    return words if is_whole else None


def _types_are_right(words: ReportWords) -> bool:
    """Whether the words, as a page from elsewhere has them, hold texts where texts are due, and a
    seed of 0 or more.
    """
    texts: list[Any] = [words.title, words.versions, *words.reading]
    texts += words.about.to_dict().values()
    for pairs in (words.facts, words.inputs):
        texts += [*pairs.keys(), *pairs.values()]
    texts += [name for name in words.groups or () if name is not None]
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(words.named, bool)
        and type(words.seed) is int
        and words.seed >= 0
        and _VERSIONS.fullmatch(words.versions) is not None
    )


def sealed_scores(values: "Sequence[float] | np.ndarray") -> str:
    """Scores, shape (n,), as a text, infinite ones as "inf" and "-inf", which JSON has no numbers
    for.
    """
    scores: list[float | str] = []
    for value in np.asarray(values, float).tolist():
        scores.append(value if math.isfinite(value) else str(value))
    return sealed_text(scores)


def read_scores_of(text: str) -> list[float]:
    """The scores that `sealed_scores` wrote as this text, shape (n,); a ValueError where it holds
    anything else.
    """
    values: Any = json.loads(text)
    scores: list[float] = []
    for value in values if isinstance(values, list) else [None]:
        if not (isinstance(value, float) or value in ("inf", "-inf")):
            raise ValueError("the scores are not numbers as `paperlib audit --plan` writes them")
        scores.append(float(value))
    if sealed_scores(scores) != text:
        raise ValueError("the scores are not numbers as `paperlib audit --plan` writes them")
    return scores


def group_names(groups: "Sequence[Any] | None") -> tuple[str | None, ...] | None:
    """The group of each record as text, None for a missing one; None where there are no groups."""
    if groups is None:
        return None
    import pandas as pd  # slow to load, and only groups need it

    names: list[str | None] = []
    for group in groups:
        names.append(None if pd.isna(cast(Any, group)) else str(group))
    return tuple(names)


@cache
def versions() -> str:
    """What writes reports here: versions of paperlib, with a digest of its sources, and of the
    libraries that draw and round.
    """
    names = [f"paperlib {paperlib.__version__} ({_digest_of_sources()})"]
    for library in _LIBRARIES:
        names.append(f"{library} {package_version(library)}")
    return ", ".join(names)


def _digest_of_sources() -> str:
    """Twelve hexadecimal digits that change with any source that a report depends on."""
    root = Path(paperlib.__file__).parent
    digest = hashlib.sha256()
    for room in _ROOMS:
        for path in sorted((root / room).rglob("*")):
            if path.suffix in _SOURCES:
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:12]
