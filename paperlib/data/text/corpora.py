"""Text corpora of any size: files of text, JSON lines, Parquet and WARC, read in pieces of bounded
size.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

import yaml

from paperlib.core import check_choice
from paperlib.data.files import data_file
from paperlib.data.text.formats import read_pieces
from paperlib.data.text.pieces import Reading, ReadLog
from paperlib.data.text.streams import printable
from paperlib.io.files import data_folder, visible_files


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
    subset_field: str = (
        "subset"  # of its documents; those without it are of the folder that they are in
    )


_KNOWN = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8")).items()
CORPORA: Mapping[str, CorpusSource] = MappingProxyType(
    {name: CorpusSource(**one) for name, one in _KNOWN}
)
"""Corpora known by name."""


def corpus_path(name: str) -> Path:
    """The file or folder of a known corpus in the data folder."""
    check_choice("name", name, CORPORA)
    known = CORPORA[name]
    if (folder := data_folder() / known.file).is_dir():
        return folder
    return data_file(name, known.file, known.sha256, known.source)


def corpus_content(name: str) -> bytes:
    """What identifies a known corpus: its file's bytes, or name and size of each file of its
    folder.
    """
    if (path := corpus_path(name)).is_file():
        return path.read_bytes()
    files = (file.path for file in corpus_files(path))
    return "\n".join(
        f"{file.relative_to(path).as_posix()} {file.stat().st_size}" for file in files
    ).encode()


def nid_corpus() -> list[Document]:
    """The 23,544 documents of the natural-identifier corpus (40.8 million characters)."""
    return list(read_documents(corpus_path("nid_corpus")))


def pile_test_subsets() -> list[Document]:
    """The 7,396 documents of the Pile's test part, non-members of models trained on the Pile."""
    return list(read_documents(corpus_path("pile_test_subsets")))


def corpus_files(root: str | Path) -> list[CorpusFile]:
    """The files of a corpus, sorted: a known name, a file, or a folder without its hidden files.

    Raises:
        ValueError: Nothing of that name, or a folder without files.
        DataUnavailableError: A known corpus whose file is not on this machine.
    """
    if isinstance(root, str) and root in CORPORA:
        path = corpus_path(root)
        return corpus_files(path) if path.is_dir() else [CorpusFile(path, root)]
    if not str(root):
        raise ValueError("corpus: expected a file, a folder or a known corpus, got an empty text")
    if (top := Path(root).expanduser()).is_file():
        return [CorpusFile(top, _subset_of(top, top.parent))]
    if not top.is_dir():
        known = ", ".join(map(repr, CORPORA))
        raise ValueError(
            f"corpus: expected a file, a folder or one of {known}; {str(root)!r} is none"
        )
    paths = [top / one for one in visible_files(top)]
    if not paths:
        raise ValueError(f"corpus: the folder {top} holds no files")
    return [CorpusFile(path, _subset_of(path, top)) for path in paths]


def _subset_of(path: Path, top: Path) -> str:
    """The first folder below the top; for files there the name without the endings of its
    format.
    """
    first, *below = map(printable, path.relative_to(top).parts)
    return first if below else first.split(".", 1)[0] or first


def installed_text(packages: tuple[str, ...]) -> list[CorpusFile]:
    """Text that ships with installed packages, each a subset: source, licences, and lists of
    files.
    """
    suffixes = {".py", ".pyi", ".txt", ".md", ".rst", ".json", ".toml"}
    listed = list[CorpusFile]()
    for package in packages:
        try:
            files = metadata.files(package)
        except metadata.PackageNotFoundError:
            raise ValueError(f"packages: {package!r} is not installed") from None
        wanted = (
            f for f in files or [] if f.suffix in suffixes or f.parent.name.endswith(".dist-info")
        )
        paths = (Path(str(file.locate())) for file in wanted)
        listed += [CorpusFile(path, package) for path in paths if path.is_file()]
    return sorted(listed, key=lambda file: (file.subset, file.path))


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
    skipped = log or ReadLog()
    known = CORPORA.get(str(root))
    names = reading or Reading(subset_field=known.subset_field if known else Reading.subset_field)
    total = unread = 0
    for file in corpus_files(root):
        held, size, documents = bytearray(), file.path.stat().st_size, 0
        for piece in read_pieces(file.path, file.subset, names, skipped):
            held += piece.data
            documents += piece.documents
            if not piece.more:
                for text in (
                    bytes(held).split(piece.separator) if piece.separator else [bytes(held)]
                ):
                    yield Document(text.decode("utf-8", "replace"), piece.subset)
                held.clear()
        total, unread = total + size, unread + (0 if documents else size)
    if 2 * unread > total:
        reasons = "; ".join(
            f"{reason}: {number}, such as {where}" for reason, number, where in skipped.rows
        )
        raise ValueError(
            f"{root}: {unread:,} of {total:,} bytes of this corpus were not read ({reasons})"
        )
