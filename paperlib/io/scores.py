"""Membership scores from files: the reader of `paperlib.core`, under the name that users import."""

from paperlib.core.reading import LoadedScores as LoadedScores
from paperlib.core.reading import read_scores as read_scores
