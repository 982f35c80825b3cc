"""Made-up texts in the official layouts: WikiText, dialogues, the Pile, Dolma and Proof-Pile-2."""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.core.packages import optional_package

_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "on", "us")]
_WORDS = 600
_FOLLOWERS = 6  # words that may follow a word: so few that a model can learn them
_SENTENCE, _PARAGRAPH = 14, 84  # words
_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}  # hexadecimal

NID_SUBSETS = (
    "github_java", "buildroot_hashes", "buildroot_patches", "openembedded_recipes", "easybuild_configs",
    "vcpkg_ports", "scoop_manifests", "defi_adapters", "ethereum_tokens", "defi_address_book", "lockfiles",
    "debian_packages", "debian_md5sums", "debian_changelogs",
)  # fmt: skip
PILE_TEST_SUBSETS = (
    "hackernews", "github", "stackexchange", "ubuntu_irc", "wikipedia", "pile_cc", "pubmed_abstracts",
    "nih_exporter", "uspto_backgrounds", "philpapers", "europarl", "dm_mathematics",
)  # fmt: skip
PILE_NAMES = ("Github", "StackExchange", "HackerNews", "Pile-CC", "ArXiv", "PubMed Central")
DOLMA_FOLDERS = (
    "algebraic-stack-train", "arxiv", "c4-filtered", "falcon-refineweb-filtered", "megawika",
    "open-web-math-train", "pes2o",
)  # fmt: skip


def write(folder: Path) -> None:
    """Write every text below ``folder``, the same in each call.

    Args:
        folder: Folder that plays the part of the data folder.
    """
    chain = _Chain()
    _wikitext(folder / "wikitext-103", chain, {"train": 90, "valid": 4, "test": 4}, words=900)
    _write_lines(folder / "synthetic_persona_chat.jsonl.gz", _dialogues(chain, 300))
    named = {"nid_corpus": NID_SUBSETS, "pile_test_subsets": PILE_TEST_SUBSETS}
    for at, (name, subsets) in enumerate(named.items()):
        rows = ({"text": text, "source": "made up", "subset": subset}
                for subset in subsets for text in _documents(chain, 30, at, subset))  # fmt: skip
        _write_lines(folder / f"{name}.jsonl.gz", rows)
    _hub_corpora(folder, chain, 40)


class _Chain:
    """Words drawn one after the other, each from the few that may follow the one before."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        lengths = rng.integers(1, 4, _WORDS)
        self.words = np.array(["".join(rng.choice(_SYLLABLES, length)) for length in lengths], dtype=object)
        self.followers = rng.integers(0, _WORDS, (_WORDS, _FOLLOWERS))

    def walks(self, texts: int, words: int, seed: int) -> NDArray[np.int64]:
        """Numbers of words, shape (texts, words)."""
        rng = np.random.default_rng([1, seed])
        found = np.empty((texts, words), dtype=np.int64)
        now = rng.integers(0, _WORDS, texts)
        for place in range(words):
            # Of two draws the smaller: early followers come more often than late ones.
            drawn = rng.integers(0, _FOLLOWERS, (2, texts)).min(axis=0)
            now = self.followers[now, drawn]
            found[:, place] = now
        return found

    def sentences(self, walk: NDArray[np.int64], ending: str = " . ") -> list[str]:
        """Sentences of a walk."""
        named = self.words[walk]
        return [" ".join(named[at : at + _SENTENCE]) + ending for at in range(0, len(named), _SENTENCE)]


def _wikitext(folder: Path, chain: _Chain, articles: Mapping[str, int], *, words: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (part, count) in enumerate(articles.items()):
        with (folder / f"wiki.{part}.tokens").open("w", encoding="utf-8") as file:
            for walks in _in_groups(chain, count, words, seed):
                for walk in walks:
                    file.write(_article(chain, walk))


def _article(chain: _Chain, walk: NDArray[np.int64]) -> str:
    """An article with its title and a heading before every fourth paragraph."""
    title = " ".join(chain.words[walk[:3]]).title()
    parts = [f" = {title} = \n \n"]
    for number, at in enumerate(range(0, len(walk), _PARAGRAPH)):
        if number % 4 == 3:
            parts.append(f" = = {str(chain.words[walk[at]]).title()} = = \n \n")
        parts.append(" " + "".join(chain.sentences(walk[at : at + _PARAGRAPH])) + "\n \n")
    return "".join(parts)


def _in_groups(chain: _Chain, texts: int, words: int, seed: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, texts, 2_000):
        yield chain.walks(min(2_000, texts - start), words, seed * 1_000 + start)


def _dialogues(chain: _Chain, count: int) -> Iterator[dict[str, Any]]:
    number = 0
    for walks in _in_groups(chain, count, 14 * _SENTENCE, 11):
        for walk in walks:
            said = [one.strip() for one in chain.sentences(walk, ".")]
            speakers = [1 + turn % 2 for turn in range(len(said) - 4)]
            split = "train" if number % 10 else "valid"
            number += 1
            yield {"split": split, "persona_1": said[:2], "persona_2": said[2:4], "turns": said[4:],
                   "speakers": speakers}  # fmt: skip


def _documents(chain: _Chain, count: int, seed: int, subset: str) -> Iterator[str]:
    """Documents with two identifiers each, of kinds in turn; no value occurs twice."""
    rng = np.random.default_rng([2, seed, *subset.encode()])
    kinds = [*_DIGITS, "ethereum", "serial"]
    for number, walk in enumerate(chain.walks(count, 5 * _SENTENCE, int(rng.integers(2**31)))):
        first, *rest = chain.sentences(walk, ".\n")
        lines = [_identifier(kinds[(2 * number + turn) % len(kinds)], rng) for turn in range(2)]
        yield "".join([first, lines[0], *rest[:2], lines[1], *rest[2:]])


def _identifier(kind: str, rng: np.random.Generator) -> str:
    """A line that holds one identifier."""
    if kind == "serial":
        value = int(rng.integers(-(2**63), 2**63 - 1))
        return f"private static final long serialVersionUID = {value}L;\n"
    digits = rng.bytes(20 if kind == "ethereum" else _DIGITS[kind] // 2).hex()
    return f"address: 0x{digits}\n" if kind == "ethereum" else f"{kind}: {digits}\n"


def _hub_corpora(folder: Path, chain: _Chain, each: int) -> None:
    """The corpora of Pythia (the Pile) and of OLMo (Dolma, with Proof-Pile-2's test part beside it)."""

    def pile(seed: int) -> Iterator[dict[str, Any]]:
        for name in PILE_NAMES:
            for text in _documents(chain, each, seed, name):
                yield {"text": text, "meta": {"pile_set_name": name}}

    def plain(seed: int, subset: str, count: int) -> Iterator[dict[str, Any]]:
        return ({"id": str(n), "text": text} for n, text in enumerate(_documents(chain, count, seed, subset)))

    for at, part in enumerate(("train/00", "val", "test")):
        _write_lines(folder / "pile" / f"{part}.jsonl.zst", pile(10 + at))
    for name in DOLMA_FOLDERS:
        _write_lines(folder / "dolma-v1_7" / name / f"{name}-0000.json.gz", plain(20, name, each))
    for name in ("algebraic-stack", "open-web-math"):
        path = folder / "proof-pile-2" / name / "test" / "0000.jsonl.zst"
        _write_lines(path, plain(21, name, max(each // 4, 22)))


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows as JSON lines, packed as the file's name says, the same bytes in each call."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if path.suffix == ".zst":
        packed = optional_package("zstandard", "corpora", "writing this corpus").compress(data)
    else:
        packed = gzip.compress(data, compresslevel=1, mtime=0)
    path.write_bytes(packed)


def sample(sentences: int, seed: int = 0) -> Sequence[str]:
    """Sentences of the same words, for a tokenizer to learn from."""
    chain = _Chain()
    return chain.sentences(chain.walks(1, sentences * _SENTENCE, 100 + seed)[0])
