"""Texts of which training took its loss from stretches alone: completions of prompts, turns of an
assistant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paperlib.attacks.language.windows import Window


@dataclass(frozen=True, kw_only=True)
class LearnedText:
    """A text as training read it, and the stretches of it that the loss was taken from.

    Attributes:
        text: The whole text, prompts included.
        stretches: Index of the first character and of the one behind the last of each stretch, in
            their order; a token that reaches into a stretch is of it.
        is_rendered: Whether a chat template wrote the text, so that the tokenizer adds no start
            tokens of its own.
        by_turns: Whether the stretches were told turn by turn, since the template marks none.
    """

    text: str
    stretches: tuple[tuple[int, int], ...]
    is_rendered: bool = False
    by_turns: bool = False

    @property
    def learned(self) -> str:
        """The stretches alone, one behind the other."""
        return "".join(self.text[start:end] for start, end in self.stretches)


def encode_learned(tokenizer: Any, texts: Sequence[LearnedText]) -> list[Window]:
    """Tokens of each text up to the last that carries loss, each text in one window of any length
    that says which of its tokens do.

    Raises:
        ValueError: A tokenizer that does not say where tokens stand, or a text of which no token
            behind the first carries loss.

    Source:
        The masks ``assistant_only_loss`` and ``completion_only_loss`` of SFTTrainer in TRL.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            "tokenizer: to score what training took its loss from, it must say where each token "
            "stands, as fast tokenizers do"
        )
    return [_window(tokenizer, text, number) for number, text in enumerate(texts)]


def _window(tokenizer: Any, text: LearnedText, number: int) -> Window:
    """The window of one text, which is number ``number``, up to its last token that carries loss;
    its first token is never scored, since nothing precedes it. A ValueError where none carries any.
    """
    output = tokenizer(
        text.text,
        add_special_tokens=not text.is_rendered,
        return_offsets_mapping=True,
        return_attention_mask=False,
        verbose=False,
    )
    carries_loss = [_reaches_into(offsets, text.stretches) for offsets in output["offset_mapping"]]
    scored = [index for index, loss in enumerate(carries_loss) if loss and index > 0]
    if not scored:
        raise ValueError(
            f"texts: {text.text[:40]!r} at index {number} has no token that training took a loss "
            "from; leave it out"
        )
    first, last = scored[0], scored[-1]
    return Window(
        text=number,
        tokens=tuple(output["input_ids"][: last + 1]),
        first=first,
        group=0,  # as there are no contexts
        loss=tuple(carries_loss[first : last + 1]),
    )


def _reaches_into(offsets: tuple[int, int], stretches: Sequence[tuple[int, int]]) -> bool:
    """Whether a token, whose ``offsets`` are its first character and the one behind its last, has
    a character of a stretch.
    """
    start, end = offsets
    return any(
        start < stretch_end and end > stretch_start for stretch_start, stretch_end in stretches
    )
