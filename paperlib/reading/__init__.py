"""Reading membership scores and tables from files and from standard input."""

from paperlib.reading.frames import read_frames as read_frames
from paperlib.reading.scores import LoadedScores as LoadedScores
from paperlib.reading.scores import read_scores as read_scores
