"""Reading membership scores from files and from standard input."""

from paperlib.io.scores.reading import LoadedScores as LoadedScores
from paperlib.io.scores.reading import read_scores as read_scores
