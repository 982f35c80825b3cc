"""Folders of data sets and cached values on this machine."""

import os
import sys
from pathlib import Path

DATA_VARIABLE = "PAPERLIB_DATA"


def user_cache_folder() -> Path:
    """The folder of this user's caches, by the habit of the operating system."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "paperlib"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local"))) / "paperlib"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "paperlib"
    return Path.home() / ".cache" / "paperlib"


def data_folder() -> Path:
    """First place to look for data sets: ``PAPERLIB_DATA``, else a folder in the user's cache."""
    chosen = os.environ.get(DATA_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_folder() / "data"
