"""Reading membership scores and tables from files and from standard input."""

from paperlib.core.reading.frames import read_frames as read_frames
from paperlib.core.reading.scores import LoadedScores as LoadedScores
from paperlib.core.reading.scores import read_scores as read_scores
