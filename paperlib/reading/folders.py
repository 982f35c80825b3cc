"""The files of a folder, whose links lead to files of its own."""

import os
from pathlib import Path

LINKS_VARIABLE = "PAPERLIB_FOLLOW_LINKS"
"""Environment variable: 1 follows links that lead out of a folder of data or of a model."""


def visible_files(folder: str | os.PathLike[str], *, follow: bool = False) -> list[Path]:
    """Paths of the files of a folder, relative to it and sorted, without hidden ones.

    Linked folders are entered, but for links to a folder that they stand in, which would never end.

    Args:
        folder: Its path.
        follow: Whether links may lead out of the folder, as in a folder of the user's own. Those of
            a snapshot of the Hugging Face hub always lead to the ``blobs`` beside it.

    Raises:
        ValueError: A link leads out of the folder, which `LINKS_VARIABLE` may allow.
    """
    paths: list[Path] = []
    follow = follow or os.environ.get(LINKS_VARIABLE) == "1"
    inside = [] if follow else _inside(Path(folder).resolve())
    for current, subfolders, names in os.walk(folder, followlinks=True):
        files = [Path(current, name) for name in names if not name.startswith(".")]
        paths += files
        # Changed in place, since these are the folders that os.walk will enter.
        around = [path.resolve() for path in (Path(current), *Path(current).parents)]
        subfolders[:] = [name for name in subfolders if _is_entered(Path(current, name), around)]
        entered = [Path(current, name) for name in subfolders]
        _check_links([*files, *entered], inside)
    return sorted(path.relative_to(folder) for path in paths if path.is_file())


def _inside(folder: Path) -> list[Path]:
    """The folders to which links of a resolved folder may lead: itself, and the blobs of a
    snapshot of the hub.
    """
    allowed = [folder]
    for path in (folder, *folder.parents):
        if path.name == "snapshots":
            allowed.append(path.parent / "blobs")
    return allowed


def _check_links(paths: list[Path], inside: list[Path]) -> None:
    """Refuse (ValueError) a link to something outside these folders; without any, links may lead
    anywhere.
    """
    for path in paths if inside else []:
        if not path.is_symlink() or not path.exists():
            continue
        target = path.resolve()
        if not any(target.is_relative_to(folder) for folder in inside):
            raise ValueError(
                f"{path}: this link leads out of its folder, to {target}; copy what is meant into "
                f"the folder, or set {LINKS_VARIABLE}=1 if all links of the folder are yours"
            )


def _is_entered(subfolder: Path, around: list[Path]) -> bool:
    """Whether a subfolder is not hidden, and no link to one of the folders around it."""
    if subfolder.name.startswith("."):
        return False
    target = subfolder.resolve()
    return not any(folder.is_relative_to(target) for folder in around)
