"""Digests of public packages as a corpus: from PyPI's metadata with their dates, and from lock
files.
"""

import gzip
import http.client
import json
import re
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from paperlib.core import check_choice
from paperlib.core.reading.tables import decoded
from paperlib.io import atomic_file, canonical_json
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
_HASH = re.compile(r"--hash=(\w+:[0-9a-f]{32,128})")
_INTEGRITY = re.compile(r"sha\d+-[\w+/]+=*")

Entry = dict[str, str]


@dataclass(frozen=True)
class Pack:
    """What a pack holds: entries with text, subset and perhaps day, and packages without any."""

    entries: tuple[Entry, ...]
    empty: tuple[str, ...]


def write_pack(
    out: Path,
    packages: Sequence[str] = (),
    *,
    locks: Sequence[Path] = (),
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
        locks: package-lock.json (2 or 3), poetry.lock, uv.lock, Cargo.lock, or requirements with
            ``--hash``.
        digests: Keys of `CONTEXTS`, for files of the index.
        before, after: Files uploaded before, or on and after, midnight UTC of these days.
        index: Address of which ADDRESS/NAME/json is the metadata of a package, as PyPI has it.

    Raises:
        ValueError: A file is there already, an unknown package, a lock file that holds no digest or
            is given with a day, or no digest in all.
        ConnectionError: The index does not answer.
    """
    if out.exists():
        raise ValueError(f"{out}: exists already, and nothing is overwritten; give another --out")
    if locks and (before or after):
        raise ValueError(
            f"{locks[0]}: a lock file has no days of upload; leave out --before and --after"
        )
    for kind in digests:
        check_choice("digests", kind, CONTEXTS)
    names = list(dict.fromkeys(re.sub(r"[-_.]+", "-", name).lower() for name in packages))
    entries = [entry for path in locks for entry in _of_lock(path)]
    first, end = str(after or ""), str(before or "9999")  # days as text, in the order of time
    settings = [index, first, end, *digests]
    part, empty = out.with_name(f"{out.name}.part"), list[str]()
    found = _kept(part, settings)
    with progress_bar(len(names), label="packages", unit="package") as bar:
        for name in names:
            if name not in found:
                found[name] = list(_of_index(name, index, digests, first, end))
                part.parent.mkdir(parents=True, exist_ok=True)
                with part.open(
                    "a", encoding="utf-8"
                ) as file:  # a line that was cut short ends here
                    file.write("\n" + canonical_json([settings, name, found[name]]))
            entries += found[name]
            empty += [] if found[name] else [name]
            bar.update()
    if not entries:
        part.unlink(missing_ok=True)
        wanted = " or ".join(digests)
        raise ValueError(f"{', '.join(empty) or out}: no {wanted} digest of a file in these days")
    with atomic_file(out) as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.writelines(f"{canonical_json(entry)}\n".encode() for entry in entries)
    part.unlink(missing_ok=True)
    return Pack(tuple(entries), tuple(empty))


def _kept(part: Path, settings: list[str]) -> dict[str, list[Entry]]:
    """What an interrupted call with the same settings was told, by package."""
    kept: dict[str, list[Entry]] = {}
    for line in part.read_text(encoding="utf-8").splitlines() if part.is_file() else ():
        with suppress(ValueError):
            of, name, entries = json.loads(line)
            if of == settings:
                kept[name] = entries
    return kept


def _of_index(
    name: str, index: str, digests: Sequence[str], first: str, end: str
) -> Iterator[Entry]:
    try:
        for version, files in _metadata(name, index)["releases"].items():
            for file in files:
                day, known = file["upload_time_iso_8601"][:10], file["digests"]
                for kind in digests if first <= day < end else ():
                    start = CONTEXTS[kind].format(name=name, version=version, file=file["filename"])
                    yield {"text": start + known[kind], "subset": name, "day": day}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{name}: {index} gives no metadata in PyPI's form ({error!r})") from None


def _metadata(name: str, index: str) -> Any:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise ValueError(f"{name}: no name of a package; a lock file is given with --lock")
    url, again = (
        f"{index.rstrip('/')}/{name}/json",
        "what was read is kept, the next call goes on from there",
    )
    try:
        asked = urllib.request.Request(url, headers={"User-Agent": "paperlib"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            raise ValueError(f"{name}: {index} has no package of this name; {again}") from None
        raise ConnectionError(f"{url}: the index answers {error.code}; {again}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ConnectionError(f"{url} cannot be read ({error}); {again}") from None


def _of_lock(path: Path) -> list[Entry]:
    """One entry for each digest of a lock file, behind the lines that name its package."""
    try:
        parts = {".json": _npm, ".lock": _toml}.get(path.suffix, _pip)(decoded(path.read_bytes()))
        entries = [{"text": start + digest, "subset": path.name} for start, digest in parts]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        known = "package-lock.json, poetry.lock, uv.lock, Cargo.lock or requirements"
        raise ValueError(f"{path}: no {known} ({error!r})") from None
    if not entries:
        raise ValueError(f"{path}: holds no digest; requirements have them with --hash")
    return entries


def _npm(text: str) -> Iterator[tuple[str, str]]:
    for name, about in json.loads(text)["packages"].items():
        start = f'"{name}": {{\n  "version": "{about.get("version", "")}",\n'
        start += f'  "resolved": "{about["resolved"]}",\n' if "resolved" in about else ""
        for digest in _INTEGRITY.findall(about.get("integrity", "")):
            yield f'{start}  "integrity": "', digest


def _toml(text: str) -> Iterator[tuple[str, str]]:
    content = tomllib.loads(text)
    older = content.get("metadata", {}).get("files", {})
    for about in content.get("package", []):
        start = f'name = "{about["name"]}"\nversion = "{about.get("version", "")}"\n'
        lists = {
            "files = [\n    {file": about.get("files") or older.get(about["name"], []),
            "sdist = { url": [about.get("sdist", {})],
            "wheels = [\n    { url": about.get("wheels", []),
        }
        for opening, files in lists.items():
            for file in (one for one in files if "hash" in one):
                place = file.get("file") or file.get("url") or file["path"]
                yield f'{start}{opening} = "{place}", hash = "', file["hash"]
        if "checksum" in about:
            yield f'{start}source = "{about["source"]}"\nchecksum = "', about["checksum"]


def _pip(text: str) -> Iterator[tuple[str, str]]:
    for line in re.sub(r"\\\s*\n", " ", text).splitlines():
        requirement = line.split(" --hash", 1)[0].strip()
        for found in _HASH.findall(line):
            yield f"{requirement} \\\n    --hash=", found
