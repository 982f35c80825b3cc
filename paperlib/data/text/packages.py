"""Digests of public packages as a corpus: from PyPI's metadata, with their dates."""

import gzip
import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from paperlib.core.checks import check_choice
from paperlib.io.files import atomic_file, canonical_json
from paperlib.io.progress import progress_bar

PYPI = "https://pypi.org/pypi"
# What stands before a digest where it is published. No other digest does: lists of hashes are often
# sorted, so that one tells the first digits of the next.
CONTEXTS: Mapping[str, str] = {
    "sha256": (
        'name = "{name}"\nversion = "{version}"\nfiles = [\n    {{file = "{file}", hash = "sha256:'
    ),
    "md5": "https://pypi.python.org/packages/source/{name[0]}/{name}/{file}#md5=",
    "blake2b_256": "Hashes for {file}\nAlgorithm Hash digest\nBLAKE2b-256 ",
}

Entry = dict[str, str]


@dataclass(frozen=True)
class Pack:
    """What a pack holds: entries with text, subset and day, and packages without any."""

    entries: tuple[Entry, ...]
    empty: tuple[str, ...]


def write_pack(
    out: Path,
    packages: Sequence[str],
    *,
    digests: Sequence[str] = ("sha256",),
    before: date | None = None,
    after: date | None = None,
    index: str = PYPI,
) -> Pack:
    """Write digests of packages, one a document, as compressed JSON lines that `read_documents`
    takes.

    What the index said is kept in OUT.part until the pack is whole: the same call goes on where it
    was.

    Args:
        packages: Names at the index.
        digests: Keys of `CONTEXTS`, for files of the index.
        before, after: Files uploaded before, or on and after, midnight UTC of these days.
        index: Address of which ADDRESS/NAME/json is the metadata of a package, as PyPI has it.

    Raises:
        ValueError: A file is there already, an unknown package, or no digest in all.
        ConnectionError: The index does not answer.
    """
    if out.exists():
        raise ValueError(f"{out}: exists already, and nothing is overwritten; give another --out")
    for kind in digests:
        check_choice("digests", kind, CONTEXTS)
    names = list(dict.fromkeys(re.sub(r"[-_.]+", "-", name).lower() for name in packages))
    query = _Query(
        index=index,
        digests=tuple(digests),
        first=str(after or ""),
        end=str(before or "9999"),
    )
    part_file = out.with_name(f"{out.name}.part")
    by_package = _ask_for_all(names, query, part_file)
    empty = tuple(name for name in names if not by_package[name])
    entries = [entry for name in names for entry in by_package[name]]
    if not entries:
        part_file.unlink(missing_ok=True)
        kinds = " or ".join(digests)
        raise ValueError(f"{', '.join(empty) or out}: no {kinds} digest of a file in these days")
    with atomic_file(out) as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.writelines(f"{canonical_json(entry)}\n".encode() for entry in entries)
    part_file.unlink(missing_ok=True)
    return Pack(tuple(entries), empty)


@dataclass(frozen=True, kw_only=True)
class _Query:
    """What an index is asked for: digests of files uploaded from ``first`` until before ``end``."""

    index: str
    digests: tuple[str, ...]
    first: str  # a day as text, in which the order is that of time; "" is before all
    end: str  # likewise; "9999" is behind all

    @property
    def settings(self) -> list[str]:
        """What a part file notes of the query, so that no other one takes up its answers."""
        return [self.index, self.first, self.end, *self.digests]


def _ask_for_all(names: Sequence[str], query: _Query, part_file: Path) -> dict[str, list[Entry]]:
    """The entries of each package, by its name; those of the part file are not asked for again, and
    those of the index are added to it.
    """
    by_package = _kept(part_file, query.settings)
    with progress_bar(len(names), label="packages", unit="package") as bar:
        for name in names:
            if name not in by_package:
                by_package[name] = list(_of_index(name, query))
                _keep(part_file, [query.settings, name, by_package[name]])
            bar.update()
    return by_package


def _keep(part_file: Path, row: list[Any]) -> None:
    """Append a line of JSON to the part file."""
    part_file.parent.mkdir(parents=True, exist_ok=True)
    with part_file.open("a", encoding="utf-8") as file:
        file.write("\n" + canonical_json(row))  # a line that was cut short ends here


def _kept(part_file: Path, settings: list[str]) -> dict[str, list[Entry]]:
    """The entries that an interrupted call with the same settings was told, by package; none
    without a part file.
    """
    if not part_file.is_file():
        return {}
    kept: dict[str, list[Entry]] = {}
    for line in part_file.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):  # of a line that was cut short
            line_settings, name, entries = json.loads(line)
            if line_settings == settings:
                kept[name] = entries
    return kept


def _of_index(name: str, query: _Query) -> Iterator[Entry]:
    """The entries of one package, by its metadata at the index; a ValueError where these are not in
    PyPI's form.
    """
    try:
        for version, files in _metadata(name, query.index)["releases"].items():
            for file in files:
                yield from _of_file(file, name, version, query)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{name}: {query.index} gives no metadata in PyPI's form ({error!r})"
        ) from None


def _of_file(file: Mapping[str, Any], name: str, version: str, query: _Query) -> Iterator[Entry]:
    """An entry for each digest of one file of a package, if it was uploaded in the days asked."""
    day = file["upload_time_iso_8601"][:10]
    digests = file["digests"]
    if not query.first <= day < query.end:
        return
    for kind in query.digests:
        start = CONTEXTS[kind].format(name=name, version=version, file=file["filename"])
        yield {"text": start + digests[kind], "subset": name, "day": day}


def _metadata(name: str, index: str) -> Any:
    """The metadata of a package at the index, as parsed from JSON.

    Raises:
        ValueError: No name of a package, or one that the index does not have.
        ConnectionError: The index does not answer, or with something else.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise ValueError(f"{name}: no name of a package")
    url = f"{index.rstrip('/')}/{name}/json"
    again = "what was read is kept, the next call goes on from there"
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "paperlib"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            raise ValueError(f"{name}: {index} has no package of this name; {again}") from None
        raise ConnectionError(f"{url}: the index answers {error.code}; {again}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ConnectionError(f"{url} cannot be read ({error}); {again}") from None
