"""Text corpora of any size: files of text, JSON lines, Parquet and WARC, read in pieces of bounded
size.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

import yaml

from paperlib.core.checks import check_choice
from paperlib.data.files import data_file
from paperlib.data.text.formats import read_pieces
from paperlib.data.text.pieces import Piece, Reading, ReadLog
from paperlib.data.text.streams import printable
from paperlib.io.files import data_folder
from paperlib.reading.files import regular_file
from paperlib.reading.folders import visible_files
from paperlib.reading.limits import TooLargeError, check_size, in_bytes

_TEXT_MEMORY = 5
"""Memory of a byte of a document: its pieces, its bytes twice, and its text."""
_TEXT_SUFFIXES = {".py", ".pyi", ".txt", ".md", ".rst", ".json", ".toml"}


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus, and the subset that its documents are of unless they say so
    themselves.
    """

    path: Path
    subset: str  # by default the first folder below the root, or the corpus for files at the root


@dataclass(frozen=True)
class Document:
    """One text of a corpus with its subset."""

    text: str
    subset: str


@dataclass(frozen=True)
class CorpusSource:
    """A corpus known by name: a file or a folder, which may hold a part of the published files."""

    file: str  # file or folder
    source: str
    licence: str
    sha256: str | None = None  # of the file; None for a folder and for files of any content
    # Of its documents; those without it are of the folder that they are in.
    subset_field: str = "subset"


_SETTINGS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
CORPORA: Mapping[str, CorpusSource] = MappingProxyType(
    {name: CorpusSource(**settings) for name, settings in _SETTINGS.items()}
)
"""Corpora known by name."""


def corpus_path(name: str) -> Path:
    """The file or folder of a known corpus in the data folder.

    Raises:
        ValueError: A name that is not in `CORPORA`, or a file of another content.
        DataUnavailableError: There is no such file.
    """
    check_choice("name", name, CORPORA)
    corpus = CORPORA[name]
    folder = data_folder() / corpus.file
    if folder.is_dir():
        return folder
    return data_file(name, corpus.file, corpus.sha256, corpus.source)


def corpus_content(name: str) -> bytes:
    """What identifies a known corpus: its file's bytes, or a line with name and size, in bytes, of
    each file of its folder; errors are those of `corpus_path`.
    """
    path = corpus_path(name)
    if path.is_file():
        return path.read_bytes()
    files = (file.path for file in corpus_files(path))
    lines = [f"{file.relative_to(path).as_posix()} {file.stat().st_size}" for file in files]
    return "\n".join(lines).encode()


def nid_corpus() -> list[Document]:
    """The 23,544 documents of the natural-identifier corpus (40.8 million characters).

    Raises:
        DataUnavailableError: Its file is not on this machine.
        ValueError: It has another content.
    """
    return list(read_documents(corpus_path("nid_corpus")))


def pile_test_subsets() -> list[Document]:
    """The 7,396 documents of the Pile's test part, non-members of models trained on the Pile.

    Raises:
        DataUnavailableError: Its file is not on this machine.
        ValueError: It has another content.
    """
    return list(read_documents(corpus_path("pile_test_subsets")))


def corpus_files(root: str | Path) -> list[CorpusFile]:
    """The files of a corpus, sorted: a known name, a file, or a folder without its hidden files.

    Raises:
        ValueError: Nothing of that name, a folder without files, or a link that leads out of it.
        DataUnavailableError: A known corpus whose file is not on this machine.
    """
    if isinstance(root, str) and root in CORPORA:
        path = corpus_path(root)
        if path.is_dir():
            return _files_below(path, follow=True)  # in the user's own folder of data
        return [CorpusFile(path, root)]
    if not str(root):
        raise ValueError("corpus: expected a file, a folder or a known corpus, got an empty text")
    path = Path(root).expanduser()
    if path.exists() and not path.is_dir():
        regular_file(path)
        return [CorpusFile(path, _subset_of(path, path.parent))]
    if not path.is_dir():
        names = ", ".join(map(repr, CORPORA))
        raise ValueError(
            f"corpus: expected a file, a folder or one of {names}; {str(root)!r} is none"
        )
    return _files_below(path)


def _files_below(folder: Path, *, follow: bool = False) -> list[CorpusFile]:
    """The files of a folder but hidden ones, sorted; at least one. Links out of it are refused
    unless ``follow``.
    """
    paths = [folder / name for name in visible_files(folder, follow=follow)]
    if not paths:
        raise ValueError(f"corpus: the folder {folder} holds no files")
    return [CorpusFile(path, _subset_of(path, folder)) for path in paths]


def _subset_of(path: Path, top: Path) -> str:
    """The subset of a file: the name of the first folder below ``top``; of a file that stands in
    ``top`` itself its name up to the first dot, or all of it where it begins with one.
    """
    first, *below = map(printable, path.relative_to(top).parts)
    return first if below else first.split(".", 1)[0] or first


def installed_text(packages: tuple[str, ...]) -> list[CorpusFile]:
    """Files of text that ship with installed packages, each package a subset: source, licences, and
    lists of files; sorted by subset and path.

    Raises:
        ValueError: A package that is not installed.
    """
    files: list[CorpusFile] = []
    for package in packages:
        files += [CorpusFile(path, package) for path in _text_files(package)]
    return sorted(files, key=lambda file: (file.subset, file.path))


def _text_files(package: str) -> list[Path]:
    """Files of an installed package that are text by their ending, and all of its metadata; a
    ValueError where it is not installed.
    """
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        raise ValueError(f"packages: {package!r} is not installed") from None
    paths: list[Path] = []
    for file in files:
        if file.suffix in _TEXT_SUFFIXES or file.parent.name.endswith(".dist-info"):
            path = Path(str(file.locate()))
            if path.is_file():
                paths.append(path)
    return paths


def read_documents(
    root: str | Path, *, reading: Reading | None = None, log: ReadLog | None = None
) -> Iterator[Document]:
    """Every document of a corpus of `corpus_files`; ``log`` counts what was skipped, with reasons.

    ``reading`` names the fields of text and subset; None takes those of the corpus, if it is known.

    Raises:
        ValueError: Files with more than half of the bytes hold no text that could be read.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "web.jsonl"
    >>> _ = path.write_text('{"text": "Hello"}')
    >>> list(read_documents(path))
    [Document(text='Hello', subset='web')]
    """
    log = log or ReadLog()
    reading = reading or _reading_of(str(root))
    total = unread = 0  # bytes
    for file in corpus_files(root):
        size = file.path.stat().st_size
        count = 0
        pieces = read_pieces(file.path, file.subset, reading, log)
        try:
            for document in _documents(pieces):
                count += 1
                yield document
        except TooLargeError as error:
            raise TooLargeError(f"{file.path}: {error}") from None
        total += size
        if count == 0:
            unread += size
    if 2 * unread > total:
        reasons = "; ".join(
            f"{reason}: {number}, such as {where}" for reason, number, where in log.rows
        )
        raise ValueError(
            f"{root}: {unread:,} of {total:,} bytes of this corpus were not read ({reasons})"
        )


def _reading_of(root: str) -> Reading:
    """The settings of a corpus known by this name, else those of any."""
    if root in CORPORA:
        return Reading(subset_field=CORPORA[root].subset_field)
    return Reading()


def _documents(pieces: Iterable[Piece]) -> Iterator[Document]:
    """The documents of one file, put together from their pieces; a `TooLargeError` for one that
    does not fit into memory.
    """
    held = bytearray()  # of the document that goes on in the next piece
    for piece in pieces:
        held += piece.data
        check_size(_TEXT_MEMORY * len(held), f"a document of {in_bytes(len(held))} or more")
        if piece.more:
            continue
        texts = bytes(held).split(piece.separator) if piece.separator else [bytes(held)]
        held.clear()
        for text in texts:
            yield Document(text.decode("utf-8", "replace"), piece.subset)
