"""Membership scores from files: the reader of `paperlib.reading`, with its warnings in words."""

from dataclasses import replace
from functools import wraps
from typing import Any

from paperlib import reading
from paperlib.reading import LoadedScores as LoadedScores
from paperlib.words.reading import name_warnings


@wraps(reading.read_scores)
def read_scores(*paths: Any, **options: Any) -> LoadedScores:
    """`paperlib.reading.read_scores`, whose ``warnings`` are in words."""
    loaded = reading.read_scores(*paths, **options)
    return replace(loaded, warnings=name_warnings(loaded.name_conflicts))
