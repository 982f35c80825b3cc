"""Canaries: records that are made for an audit, unlike all others, to be put into the data by fair
coins.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paperlib.core import IntArray, check_at_least, check_choice, check_in, check_list

TEXT_KINDS = ("random", "tokens", "new-vocabulary", "high-temperature")
_BATCH = 64  # texts that are sampled together
_TRIES = 20  # for each canary, where short texts come out alike


def make_canaries(
    texts: Sequence[str],
    count: int,
    *,
    kind: str,
    seed: int | None = None,
    model: Any = None,
    temperature: float = 2.0,
) -> list[str]:
    """Make texts to be planted among others; `wrong_labels` makes canaries of rows with labels.

    Each is as long as a text of the corpus that is drawn for it. Words are what white space
    divides.

    Guarantee:
        All differ from each other and from the texts of the corpus, and no coin is known to them.

    Args:
        texts: The corpus.
        count: Number of canaries, 1 or more.
        kind: "random" has random characters of the corpus, "tokens" random words of it, each word
            of its vocabulary alike, and "new-vocabulary" such words with, at every second place,
            one word that is made up for the canary and stands in no other text. "high-temperature"
            samples a language model.
        seed: None for the randomness of the operating system.
        model: Of "high-temperature", not yet trained on the corpus: a folder, or a causal model and
            its tokenizer. A canary has as many tokens as a text of the corpus.
        temperature: Divisor of its logits, above 0: the higher, the less probable the canaries.

    Raises:
        ValueError: An unknown kind, a model missing or of no use, a corpus without words, or more
            canaries than such short texts allow.

    Source:
        New and improbable tokens make strong canaries: Panda et al. (2025), arXiv 2503.06808; texts
        of high
        temperature: Mitchell et al. (2026), arXiv 2606.10481, who also prompt for texts like the
            data.

    >>> make_canaries(["to be or not to be", "that is the question"], 2, kind="tokens", seed=0)
    ['to to question not', 'is to to be']
    """
    check_list("texts", texts)
    check_choice("kind", kind, TEXT_KINDS)
    check_at_least(1, count=count)
    check_in("(0, inf)", "temperature", temperature)
    if (model is not None) != (kind == "high-temperature"):
        raise ValueError("model: name one for the kind high-temperature, and for no other")
    if not (split := [words for words in (text.split() for text in texts) if words]):
        raise ValueError("texts: there are no words in them")
    vocabulary = np.array(sorted({word for words in split for word in words}), dtype=object)
    letters = sorted({letter for word in vocabulary for letter in word})
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    known, taken = {"", *(" ".join(words) for words in split)}, set(vocabulary)
    plain = "".join(filter(str.isalnum, letters)) or "".join(letters)

    def random(like: list[str]) -> str:
        made = rng.choice([*letters, " "], len(" ".join(like)))
        made[[0, -1]] = rng.choice(letters, 2)  # a space at an end is lost in some formats
        return "".join(made)

    def new_vocabulary(like: list[str]) -> str:
        size = min(max(4, len(rng.choice(vocabulary))), 12)
        own = vocabulary[0]
        while own in taken:  # longer and longer, where there are few letters
            own = "".join(plain[at] for at in rng.integers(len(plain), size=size))
            size += 1
        taken.add(own)
        words = rng.choice(vocabulary, len(like)).tolist()
        return " ".join(words[at] if at % 2 else own for at in range(len(like)))

    sampled = iter(()) if model is None else _sampled(model, texts, temperature, rng)
    make = {
        "random": random,
        "tokens": lambda like: " ".join(rng.choice(vocabulary, len(like))),
        "new-vocabulary": new_vocabulary,
        "high-temperature": lambda like: next(sampled),
    }[kind]
    made: list[str] = []
    for _ in range(_TRIES * count):
        if (text := make(split[rng.integers(len(split))])) not in known:
            known.add(text)
            made.append(text)
        if len(made) == count:
            return made
    raise ValueError(
        f"count: only {len(made):,} different texts were found for {count:,} canaries of the kind "
        f"{kind!r}, since the texts are short; ask for fewer, or for another kind"
    )


def _sampled(
    model: Any, texts: Sequence[str], temperature: float, rng: np.random.Generator
) -> Iterator[str]:
    """Texts of a language model, in one line each, with as many tokens as texts drawn from the
    corpus.
    """
    import torch  # here, since other canaries need no torch

    from paperlib.generators.text import TextGenerator, continue_prompts
    from paperlib.models.language import load_language_model

    network, tokenizer = load_language_model(model) if isinstance(model, str | Path) else model
    most = getattr(network.config, "max_position_embeddings", 1024) - 1
    sizes = [
        min(len(one), most) for one in tokenizer(list(texts), verbose=False)["input_ids"] if one
    ]
    coins = torch.Generator(network.device).manual_seed(int(rng.integers(2**62)))
    while True:
        chosen = rng.choice(sizes, _BATCH)
        settings = TextGenerator(length=int(chosen.max()), top_k=0, temperature=temperature)
        rows = continue_prompts(network, np.empty((_BATCH, 0), dtype=np.int64), settings, coins)
        for row, size in zip(rows, chosen, strict=True):
            yield " ".join(tokenizer.decode(row[:size], skip_special_tokens=True).split())


def wrong_labels(
    labels: Sequence[Any], count: int, *, seed: int | None = None
) -> tuple[IntArray, list[Any]]:
    """Choose rows at random, and for each a label that it does not have, every other one alike.

    Take the rows out of the data, lest the model learn their right labels.

    Args:
        labels: Label of each row.
        count: Number of canaries, from 1 to the number of rows.
        seed: None for the randomness of the operating system.

    Returns:
        Places of the rows, rising, and the wrong label of each.

    Raises:
        ValueError: Fewer than two labels, or fewer rows than canaries.

    >>> wrong_labels(["cat", "dog", "cat", "dog"], 2, seed=0)
    (array([0, 3]), ['dog', 'cat'])
    """
    check_at_least(1, count=count)
    if any(isinstance(one, list | dict) for one in labels):
        raise ValueError("labels: expected one label for each row, text or a number, got lists")
    if len(known := list(dict.fromkeys(labels))) < 2:
        raise ValueError(
            f"labels: all rows have the label {known[0]!r}" if known else "labels: there are none"
        )
    if count > len(labels):
        raise ValueError(
            f"count: {count:,} canaries need as many rows, and {len(labels):,} can be had"
        )
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    rows = np.sort(rng.permutation(len(labels))[:count])
    place = {label: at for at, label in enumerate(known)}
    moved = zip(rows.tolist(), rng.integers(1, len(known), count).tolist(), strict=True)
    return rows, [known[(place[labels[row]] + shift) % len(known)] for row, shift in moved]


def planted_order(rows: IntArray, canaries: IntArray, *, seed: int | None = None) -> IntArray:
    """Rows in their order, with canaries at random places among them, every order of canaries
    alike.

    >>> planted_order(np.arange(4), np.array([10, 10]), seed=0)
    array([ 0,  1, 10,  2,  3, 10])
    """
    rng = np.random.default_rng(None if seed is None else [seed, 2])
    at = np.sort(rng.permutation(rows.size + canaries.size)[: canaries.size])
    order = np.zeros(rows.size + canaries.size, dtype=np.int64)
    order[at] = rng.permutation(canaries)
    order[np.delete(np.arange(order.size), at)] = rows
    return order
