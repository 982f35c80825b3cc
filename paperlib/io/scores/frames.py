"""Tables of files as data frames."""

from paperlib.core.reading import read_frames as read_frames
