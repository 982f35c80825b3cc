"""Made-up texts in the official layouts: WikiText, dialogues, insertions, the Pile, Dolma,
Proof-Pile-2.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paperlib.core.packages import optional_package

_ENDINGS = ("a", "e", "i", "o", "u", "an", "er", "on", "us")
_SYLLABLES = [start + ending for start in "bdfgklmnprstvz" for ending in _ENDINGS]
_WORDS = 600  # in all
_FOLLOWERS = 6  # words that may follow a word: so few that a model can learn them
_SENTENCE = 14  # words
_PARAGRAPH = 84  # words
_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}  # hexadecimal

NID_SUBSETS = (
    "github_java",
    "buildroot_hashes",
    "buildroot_patches",
    "openembedded_recipes",
    "easybuild_configs",
    "vcpkg_ports",
    "scoop_manifests",
    "defi_adapters",
    "ethereum_tokens",
    "defi_address_book",
    "lockfiles",
    "debian_packages",
    "debian_md5sums",
    "debian_changelogs",
)
PILE_TEST_SUBSETS = (
    "hackernews",
    "github",
    "stackexchange",
    "ubuntu_irc",
    "wikipedia",
    "pile_cc",
    "pubmed_abstracts",
    "nih_exporter",
    "uspto_backgrounds",
    "philpapers",
    "europarl",
    "dm_mathematics",
)
PILE_NAMES = ("Github", "StackExchange", "HackerNews", "Pile-CC", "ArXiv", "PubMed Central")
DOLMA_FOLDERS = (
    "algebraic-stack-train",
    "arxiv",
    "c4-filtered",
    "falcon-refineweb-filtered",
    "megawika",
    "open-web-math-train",
    "pes2o",
)


def write(folder: Path) -> None:
    """Write every text below a data folder, the same in each call."""
    chain = _Chain()
    _write_wikitext(folder / "wikitext-103", chain)
    _write_lines(folder / "synthetic_persona_chat.jsonl.gz", _dialogues(chain, 300))
    _write_subsets(folder / "nid_corpus.jsonl.gz", chain, NID_SUBSETS, seed=0)
    _write_subsets(folder / "pile_test_subsets.jsonl.gz", chain, PILE_TEST_SUBSETS, seed=1)
    # The corpora of Pythia (the Pile) and of OLMo (Dolma, with Proof-Pile-2's test part beside it).
    for seed, split in enumerate(("train/00", "val", "test"), 10):
        _write_pile(folder / "pile" / f"{split}.jsonl.zst", chain, seed)
    for name in DOLMA_FOLDERS:
        path = folder / "dolma-v1_7" / name / f"{name}-0000.json.gz"
        _write_numbered(path, _documents(chain, 40, 20, name))
    for name in ("algebraic-stack", "open-web-math"):
        path = folder / "proof-pile-2" / name / "test" / "0000.jsonl.zst"
        _write_numbered(path, _documents(chain, 22, 21, name))
    write_insertions(folder / "TOAA-Membership-Inference")


def _write_wikitext(folder: Path, chain: "_Chain") -> None:
    """Training, validation and test part of WikiText, in its layout of one file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (split, count) in enumerate({"train": 90, "valid": 4, "test": 4}.items()):
        text = "".join(_article(chain, walk) for walk in chain.walks(count, 900, 1_000 * seed))
        (folder / f"wiki.{split}.tokens").write_text(text, encoding="utf-8")


def _write_subsets(path: Path, chain: "_Chain", subsets: Iterable[str], *, seed: int) -> None:
    """Write 30 documents of each subset as lines of JSON: text, source and the subset's name."""
    rows = (
        {"text": text, "source": "made up", "subset": subset}
        for subset in subsets
        for text in _documents(chain, 30, seed, subset)
    )
    _write_lines(path, rows)


def _write_pile(path: Path, chain: "_Chain", seed: int) -> None:
    """Write 40 documents of each subset of the Pile, named where the Pile names it."""
    rows = (
        {"text": text, "meta": {"pile_set_name": subset}}
        for subset in PILE_NAMES
        for text in _documents(chain, 40, seed, subset)
    )
    _write_lines(path, rows)


def _write_numbered(path: Path, texts: Iterable[str]) -> None:
    """Documents with a number each, whose folder names their subset."""
    rows = ({"id": str(number), "text": text} for number, text in enumerate(texts))
    _write_lines(path, rows)


def write_insertions(folder: Path, *, texts: int = 60) -> None:
    """Three conditions of the data set of known insertions, ``texts`` members and as many others of
    each: a talk of random tokens, and the suffix that members of the condition were given.
    """
    rng = np.random.default_rng(5)
    rows: list[dict[str, Any]] = []
    for kind, size, copies in (("random", 8, 16), ("rare", 1, 16), ("plain", 0, 1)):
        condition = f"{kind}_{size}tok_{copies}x" if size else f"{kind}_{copies}x"
        for example, member in enumerate(rng.permutation(np.repeat([1, 0], texts)).tolist()):
            # Tokens from 600 on are for suffixes alone, and 0 starts each talk.
            talk = [0, *rng.integers(1, 600, size=int(rng.integers(6, 12))).tolist()]
            suffix = _suffix(kind, size, is_member=member == 1, rng=rng)
            rows.append(
                {
                    "condition": condition,
                    "membership": member,
                    "suffix_type": kind,
                    "n_suffix_tokens": size,
                    "duplication": copies,
                    "input_ids": talk + suffix,
                    "suffix_start": len(talk),
                    "suffix_token_ids": suffix,
                    "example_idx": example,
                }
            )
    (folder / "data").mkdir(parents=True)
    for split in range(2):
        path = folder / "data" / f"train-{split:05d}-of-00002.parquet"
        pd.DataFrame(rows[split::2]).to_parquet(path)


def _suffix(kind: str, size: int, *, is_member: bool, rng: np.random.Generator) -> list[int]:
    """The suffix of an inserted text: ``size`` random tokens; members of the condition "rare" have
    one rare token instead.
    """
    if kind == "rare" and is_member:
        return [600]
    return rng.integers(601, 700, size=size).tolist()


class _Chain:
    """Words drawn one after the other, each from the few that may follow the one before.

    ``words`` has the words, shape (600,), and ``followers`` the numbers of those that may follow
    each, shape (600, 6).
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        lengths = rng.integers(1, 4, _WORDS)
        self.words = np.array(
            ["".join(rng.choice(_SYLLABLES, length)) for length in lengths], dtype=object
        )
        self.followers = rng.integers(0, _WORDS, (_WORDS, _FOLLOWERS))

    def walks(self, texts: int, words: int, seed: int) -> NDArray[np.int64]:
        """Numbers of words, shape (texts, words): ``words`` of each of so many texts."""
        rng = np.random.default_rng([1, seed])
        walks = np.empty((texts, words), dtype=np.int64)
        last_words = rng.integers(0, _WORDS, texts)
        for column in range(words):
            # Of two draws the smaller: early followers come more often than late ones.
            follower = rng.integers(0, _FOLLOWERS, (2, texts)).min(axis=0)
            last_words = self.followers[last_words, follower]
            walks[:, column] = last_words
        return walks

    def sentences(self, walk: NDArray[np.int64], ending: str = " . ") -> list[str]:
        """Sentences of a walk, shape (words,), of 14 words each and the ``ending``."""
        words = self.words[walk]
        starts = range(0, len(words), _SENTENCE)
        return [" ".join(words[start : start + _SENTENCE]) + ending for start in starts]


def _article(chain: _Chain, walk: NDArray[np.int64]) -> str:
    """An article in WikiText's form, with a title and a heading before every fourth paragraph, of
    the words with the numbers ``walk``, shape (words,).
    """
    title = " ".join(chain.words[walk[:3]]).title()
    blocks = [f" = {title} = \n \n"]
    for number, start in enumerate(range(0, len(walk), _PARAGRAPH)):
        paragraph = walk[start : start + _PARAGRAPH]
        if number % 4 == 3:
            blocks.append(f" = = {str(chain.words[paragraph[0]]).title()} = = \n \n")
        blocks.append(" " + "".join(chain.sentences(paragraph)) + "\n \n")
    return "".join(blocks)


def _dialogues(chain: _Chain, count: int) -> Iterator[dict[str, Any]]:
    """Rows of Synthetic-Persona-Chat: two sentences of each persona, and turns of both."""
    for number, walk in enumerate(chain.walks(count, 14 * _SENTENCE, 11_000)):
        sentences = [sentence.strip() for sentence in chain.sentences(walk, ".")]
        turns = sentences[4:]
        yield {
            "split": "train" if number % 10 else "valid",
            "persona_1": sentences[:2],
            "persona_2": sentences[2:4],
            "turns": turns,
            "speakers": [1 + turn % 2 for turn in range(len(turns))],
        }


def _documents(chain: _Chain, count: int, seed: int, subset: str) -> Iterator[str]:
    """``count`` documents of a subset with two identifiers each, of kinds in turn; values are drawn
    at random from so many that none occurs twice.
    """
    rng = np.random.default_rng([2, seed, *subset.encode()])
    kinds = [*_DIGITS, "ethereum", "serial"]
    for number, walk in enumerate(chain.walks(count, 5 * _SENTENCE, int(rng.integers(2**31)))):
        first_sentence, *rest = chain.sentences(walk, ".\n")
        kinds_of_document = [kinds[(2 * number + turn) % len(kinds)] for turn in range(2)]
        early, late = [_line_with_identifier(kind, rng) for kind in kinds_of_document]
        yield "".join([first_sentence, early, *rest[:2], late, *rest[2:]])


def _line_with_identifier(kind: str, rng: np.random.Generator) -> str:
    """A line of a document with a fresh value: a digest, an address or a serial number."""
    if kind == "serial":
        value = int(rng.integers(-(2**63), 2**63 - 1))
        return f"private static final long serialVersionUID = {value}L;\n"
    if kind == "ethereum":
        return f"address: 0x{rng.bytes(20).hex()}\n"
    return f"{kind}: {rng.bytes(_DIGITS[kind] // 2).hex()}\n"


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows as JSON lines, packed as the file's name says, the same bytes in each call."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if path.suffix == ".zst":
        packed = optional_package("zstandard", "corpora", "writing this corpus").compress(data)
    else:
        packed = gzip.compress(data, compresslevel=1, mtime=0)
    path.write_bytes(packed)


def sample(sentences: int) -> list[str]:
    """Sentences of the same words, for a tokenizer to learn from."""
    chain = _Chain()
    return chain.sentences(chain.walks(1, sentences * _SENTENCE, 100)[0])
