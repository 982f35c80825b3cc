"""Canaries: records that are made for an audit, unlike all others, to be put into the data by fair
coins.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from paperlib.core import IntArray
from paperlib.core.checks import check_at_least, check_choice, check_in, check_list
from paperlib.generators.chats import last_answer, with_last_answer

TEXT_KINDS = ("random", "tokens", "new-vocabulary", "high-temperature")
_BATCH = 64  # texts that are sampled together
_TRIES = 20  # for each canary, where short texts come out alike


@overload
def make_canaries(
    texts: Sequence[str],
    count: int,
    *,
    kind: str,
    seed: int | None = None,
    model: Any = None,
    temperature: float = 2.0,
) -> list[str]: ...
@overload
def make_canaries(
    texts: Sequence[Mapping[str, Any]],
    count: int,
    *,
    kind: str,
    seed: int | None = None,
    model: Any = None,
    temperature: float = 2.0,
) -> list[dict[str, Any]]: ...
def make_canaries(
    texts: Sequence[Any],
    count: int,
    *,
    kind: str,
    seed: int | None = None,
    model: Any = None,
    temperature: float = 2.0,
) -> list[Any]:
    """Make texts to be planted among others; `wrong_labels` makes canaries of rows with labels.

    Each is as long as a text of the corpus that is drawn for it. Words are what white space
    divides. Of chats the texts are their last answers: a canary is a random chat of the corpus with
    another last answer.

    Guarantee:
        All differ from each other and from the texts of the corpus, and no coin is known to them.

    Args:
        texts: The corpus: texts, or chats as mappings (messages, conversations, or prompt and
            completion).
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
        ValueError: An unknown kind, a model missing or of no use, a corpus without words, a chat
            without an answer, or more canaries than such short texts allow.

    Source:
        New and improbable tokens make strong canaries: Panda et al. (2025), arXiv 2503.06808; texts
        of high temperature: Mitchell et al. (2026), arXiv 2606.10481, who also prompt for texts
        like the data.

    >>> make_canaries(["to be or not to be", "that is the question"], 2, kind="tokens", seed=0)
    ['to to question not', 'is to to be']
    """
    check_list("texts", texts)
    check_choice("kind", kind, TEXT_KINDS)
    check_at_least(1, count=count)
    check_in("(0, inf)", "temperature", temperature)
    if (model is not None) != (kind == "high-temperature"):
        raise ValueError("model: name one for the kind high-temperature, and for no other")
    answers = answers_of(texts)
    if answers is not None:
        made = make_canaries(
            answers, count, kind=kind, seed=seed, model=model, temperature=temperature
        )
        rows = example_rows(len(answers), count, seed=seed)
        return [
            with_last_answer(texts[row], canary)
            for row, canary in zip(rows.tolist(), made, strict=True)
        ]
    corpus = _Corpus.of(texts)
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    sampled = iter(()) if model is None else _sampled(model, texts, temperature, rng)
    makers: dict[str, Callable[[list[str]], str]] = {
        "random": lambda like: corpus.random_letters(like, rng),
        "tokens": lambda like: corpus.random_words(like, rng),
        "new-vocabulary": lambda like: corpus.random_and_new_words(like, rng),
        "high-temperature": lambda like: next(sampled),
    }
    make = makers[kind]
    # No canary is empty or a text of the corpus; white space of any kind counts as one blank.
    taken = {"", *(" ".join(words) for words in corpus.texts)}
    canaries: list[str] = []
    for _ in range(_TRIES * count):
        text = make(corpus.texts[rng.integers(len(corpus.texts))])
        if text not in taken:
            taken.add(text)
            canaries.append(text)
        if len(canaries) == count:
            return canaries
    raise ValueError(
        f"count: only {len(canaries):,} different texts were found for {count:,} canaries of the "
        f"kind {kind!r}, since the texts are short; ask for fewer, or for another kind"
    )


def answers_of(rows: Sequence[Any]) -> list[str] | None:
    """The last answer of each chat, shape (n,); None where all rows are texts.

    Raises:
        ValueError: A chat without a last answer, or a text among chats.
    """
    if not any(isinstance(row, Mapping) for row in rows):
        return None
    answers: list[str] = []
    for number, row in enumerate(rows):
        answer = last_answer(row) if isinstance(row, Mapping) else None
        if answer is None:
            raise ValueError(
                f"texts[{number}] holds no text of a completion or of an assistant's last answer, "
                "in which a canary could stand; give texts alone, or chats alone"
            )
        answers.append(answer)
    return answers


def example_rows(size: int, count: int, *, seed: int | None = None) -> IntArray:
    """Numbers of the records, of ``size``, that canaries are like but for their made part, shape
    (count,); a record may come several times.
    """
    rng = np.random.default_rng(None if seed is None else [seed, 3])
    return rng.integers(size, size=count)


@dataclass(frozen=True, eq=False)
class _Corpus:
    """What canaries are made of; each is made ``like`` a text of the corpus, as long as it."""

    texts: list[list[str]]  # words of each text that has some
    vocabulary: NDArray[np.object_]  # different words, sorted
    letters: list[str]  # different letters of the words, sorted
    words: set[str]  # of the vocabulary, and new ones as they are made

    @classmethod
    def of(cls, texts: Sequence[str]) -> "_Corpus":
        """Words and letters of the texts; refuses texts without words."""
        split = [words for words in (text.split() for text in texts) if words]
        if not split:
            raise ValueError("texts: there are no words in them")
        words = {word for text in split for word in text}
        vocabulary = np.array(sorted(words), dtype=object)
        letters = sorted({letter for word in words for letter in word})
        return cls(split, vocabulary, letters, words)

    def random_letters(self, like: list[str], rng: np.random.Generator) -> str:
        """Letters and spaces of the corpus, each alike."""
        drawn = rng.choice([*self.letters, " "], len(" ".join(like)))
        drawn[[0, -1]] = rng.choice(self.letters, 2)  # a space at an end is lost in some formats
        return "".join(drawn)

    def random_words(self, like: list[str], rng: np.random.Generator) -> str:
        """Words of the vocabulary, each alike."""
        return " ".join(rng.choice(self.vocabulary, len(like)))

    def random_and_new_words(self, like: list[str], rng: np.random.Generator) -> str:
        """Words of the vocabulary, and before each of them the same new word."""
        new = self._new_word(rng)
        words = rng.choice(self.vocabulary, len(like)).tolist()
        return " ".join(word if index % 2 else new for index, word in enumerate(words))

    def _new_word(self, rng: np.random.Generator) -> str:
        """A word of letters and digits that has not been there, about as long as others, in 4 to 12
        letters where that suffices.
        """
        # Punctuation only where the corpus has neither letters nor digits.
        plain = "".join(filter(str.isalnum, self.letters)) or "".join(self.letters)
        size = min(max(4, len(rng.choice(self.vocabulary))), 12)
        word = self.vocabulary[0]
        while word in self.words:  # longer and longer, where there are few letters
            word = "".join(plain[index] for index in rng.integers(len(plain), size=size))
            size += 1
        self.words.add(word)
        return word


def _sampled(
    model: Any, texts: Sequence[str], temperature: float, rng: np.random.Generator
) -> Iterator[str]:
    """Texts of a language model, one after the other without end, in one line each, with as many
    tokens as texts drawn from the corpus.

    ``model`` is a folder, or a causal model and its tokenizer; ``temperature`` divides its logits.
    """
    import torch  # here, since other canaries need no torch

    from paperlib.generators.text import TextGenerator, continue_prompts
    from paperlib.models.language import load_language_model

    network, tokenizer = load_language_model(model) if isinstance(model, str | Path) else model
    # One place is for the token that starts a text.
    longest = getattr(network.config, "max_position_embeddings", 1024) - 1
    tokens = tokenizer(list(texts), verbose=False)["input_ids"]
    sizes = [min(len(row), longest) for row in tokens if row]
    coins = torch.Generator(network.device).manual_seed(int(rng.integers(2**62)))
    while True:
        lengths = rng.choice(sizes, _BATCH)
        # All are drawn as long as the longest, without prompts, and then cut.
        settings = TextGenerator(length=int(lengths.max()), top_k=0, temperature=temperature)
        rows = continue_prompts(network, np.empty((_BATCH, 0), dtype=np.int64), settings, coins)
        for row, size in zip(rows, lengths, strict=True):
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
    if any(isinstance(label, list | dict) for label in labels):
        raise ValueError("labels: expected one label for each row, text or a number, got lists")
    different = list(dict.fromkeys(labels))
    if not different:
        raise ValueError("labels: there are none")
    if len(different) == 1:
        raise ValueError(f"labels: all rows have the label {different[0]!r}")
    if count > len(labels):
        raise ValueError(
            f"count: {count:,} canaries need as many rows, and {len(labels):,} can be had"
        )
    rng = np.random.default_rng(None if seed is None else [seed, 1])
    rows = np.sort(rng.permutation(len(labels))[:count])
    shifts = rng.integers(1, len(different), count)  # from the right label to another one
    number_of = {label: number for number, label in enumerate(different)}
    wrong: list[Any] = []
    for row, shift in zip(rows.tolist(), shifts.tolist(), strict=True):
        wrong_number = (number_of[labels[row]] + shift) % len(different)
        wrong.append(different[wrong_number])
    return rows, wrong


def planted_order(rows: IntArray, canaries: IntArray, *, seed: int | None = None) -> IntArray:
    """Rows in their order, with canaries at random places among them, every order of canaries
    alike.

    Args:
        rows, canaries: Numbers of records, shape (n,) and (c,).
        seed: None for the randomness of the operating system.

    Returns:
        Both together, shape (n + c,).

    >>> planted_order(np.arange(4), np.array([10, 10]), seed=0)
    array([ 0,  1, 10,  2,  3, 10])
    """
    rng = np.random.default_rng(None if seed is None else [seed, 2])
    size = rows.size + canaries.size
    planted = np.sort(rng.permutation(size)[: canaries.size])
    order = np.zeros(size, dtype=np.int64)
    order[planted] = rng.permutation(canaries)
    order[np.delete(np.arange(size), planted)] = rows
    return order
