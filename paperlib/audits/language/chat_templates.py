"""Chats in the forms of fine-tuning data, as the text that training saw: by the model's own
template. What training took its loss from: all of it, or completions alone.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from paperlib.attacks.language.completions import LearnedText
from paperlib.audits.language.template_bounds import TakesTooMuchError, bounded
from paperlib.core.checks import check_choice, check_list
from paperlib.core.visible import visible_text
from paperlib.generators.chats import is_chat, is_pair, listed, messages_of

On = Literal["all", "completions"]
"""What training took its loss from: whole texts, or completions and the assistant's turns alone."""

_LONGEST_REASON = 300  # characters of what a template says
# How often a template may write what it is given, which it may escape and indent.
_TIMES_WRITTEN = 16
_OF_ITS_OWN = 1_000  # characters beside its own, such as a date and names of the model
_MARK = re.compile(r"{%-?\s*generation\b")  # in a template, before what the assistant writes


class ChatTemplate:
    """Writes chats as text with the template of a model's tokenizer, which is loaded for the first
    one.

    A chat is a record with a list of ``messages`` (role and content), of ``conversations`` (from
    and value), or with ``prompt`` and ``completion``, two texts or two lists of messages.

    Args:
        model: Name or folder of the model, for messages and to load its tokenizer from.
        tokenizer: The tokenizer, where it is loaded already.

    Source:
        The dataset formats of the library TRL; conversations are those of ShareGPT.
    """

    def __init__(self, model: str, tokenizer: Any = None) -> None:
        self._model = model
        self._loaded = tokenizer

    def text(self, row: Mapping[str, Any], field: str) -> str:
        """The chat of a record, for which `is_chat` is true, as text; ``field`` may hold it.

        Raises:
            ValueError: Messages of another form, a tokenizer without a template, or a chat that the
                template refuses.
        """
        prompt = row.get("prompt")
        completion = row.get("completion")
        if isinstance(prompt, str) and isinstance(completion, str):
            return prompt + completion
        return self._rendered(messages_of(row, field), row.get("tools"))

    def learned(self, row: Mapping[str, Any], field: str) -> LearnedText:
        """The chat of a record, as `text` writes it, with what training took its loss from.

        Of a prompt with its completion, that is the completion, to which the tokenizer's end token
        is added where both are texts. Of other chats it is what the template marks as generated;
        if it marks nothing, each turn of the assistant: what the template adds for it behind the
        earlier turns and the start of an answer.

        Raises:
            ValueError: As for `text`; a record without a completion or a turn of the assistant, or
                turns that the template does not write one behind the other.

        Source:
            ``completion_only_loss`` and ``assistant_only_loss`` of SFTTrainer in TRL.
        """
        prompt = row.get("prompt")
        completion = row.get("completion")
        if isinstance(prompt, str) and isinstance(completion, str):
            return self._learned_pair(prompt, completion)
        if not is_chat(row, field):
            raise ValueError(
                "holds no completion: the loss on completions needs a prompt and a completion, or "
                "a chat with turns of the assistant"
            )
        tools = row.get("tools")
        messages = messages_of(row, field)
        if is_pair(row, field):
            answered = len(listed(prompt, "user"))
            return self._learned_turns(messages, [_Turn(answered, len(messages))], tools)
        if self._marks_turns(tools):
            return self._learned_marks(messages, tools)
        turns: list[_Turn] = []
        for index, message in enumerate(messages):
            if message["role"] == "assistant":
                turns.append(_Turn(index, index + 1))
        learned = self._learned_turns(messages, turns, tools)
        return replace(learned, by_turns=True)

    def _learned_pair(self, prompt: str, completion: str) -> LearnedText:
        """A prompt and its completion, which ends in the tokenizer's end token, as in TRL."""
        end = getattr(self._tokenizer, "eos_token", None) or ""
        if not completion.endswith(end):
            completion += end
        text = prompt + completion
        return LearnedText(text=text, stretches=((len(prompt), len(text)),))

    def _learned_marks(self, messages: list[dict[str, Any]], tools: Any) -> LearnedText:
        """Messages as text, with the stretches, from one character to before another, of tokens
        that the template marks as generated; a ValueError where it marks none.
        """
        text = self._rendered(messages, tools)
        output = self._applied(
            messages,
            tools,
            return_dict=True,
            return_assistant_tokens_mask=True,
            tokenizer_kwargs={"return_offsets_mapping": True},
        )
        stretches: list[tuple[int, int]] = []
        is_open = False  # whether the stretch of the token before goes on
        masks = zip(output["assistant_masks"], output["offset_mapping"], strict=True)
        for is_marked, (start, end) in masks:
            if is_marked and is_open:
                stretches[-1] = (stretches[-1][0], end)
            elif is_marked:
                stretches.append((start, end))
            is_open = bool(is_marked)
        return _checked(LearnedText(text=text, stretches=tuple(stretches), is_rendered=True))

    def _learned_turns(
        self, messages: list[dict[str, Any]], turns: "Sequence[_Turn]", tools: Any
    ) -> LearnedText:
        """Messages as text, with the stretch, from one character to before another, that the
        template adds for each of the turns behind the earlier messages and the start of an answer.

        Raises:
            ValueError: No turn, or a template that writes the earlier messages differently once
                later ones follow, so that no stretch can be told.
        """
        text = self._rendered(messages, tools)
        stretches: list[tuple[int, int]] = []
        for turn in turns:
            before = ""
            if turn.first:
                before = self._rendered(messages[: turn.first], tools, add_generation_prompt=True)
            through = self._rendered(messages[: turn.end], tools)
            if not (text.startswith(through) and through.startswith(before)):
                raise ValueError(
                    f"holds a chat whose message {turn.first + 1} the template of {self._model} "
                    "writes differently without those behind it, so that what training took its "
                    "loss from cannot be told; mark it in the template ({% generation %})"
                )
            stretches.append((len(before), len(through)))
        return _checked(LearnedText(text=text, stretches=tuple(stretches), is_rendered=True))

    def _marks_turns(self, tools: Any) -> bool:
        """Whether the template marks what the assistant writes."""
        self._check_template()
        return _MARK.search(self._tokenizer.get_chat_template(None, tools)) is not None

    def _rendered(self, messages: list[dict[str, Any]], tools: Any, **options: Any) -> str:
        """Messages as the tokenizer writes them; the option ``add_generation_prompt`` adds the
        start of the next answer. A ValueError where the template refuses, or multiplies a text.
        """
        text = str(self._applied(messages, tools, tokenize=False, **options))
        self._check_length(text, messages, tools)
        return text

    def _check_length(self, text: str, messages: list[dict[str, Any]], tools: Any) -> None:
        """Refuse (ValueError) a text far longer than its messages and tools, written 16 times, and
        the template, once for each message.
        """
        template = self._tokenizer.get_chat_template(None, tools)
        read = len(json.dumps([messages, tools], default=str))
        allowed = _TIMES_WRITTEN * read + (len(messages) + 1) * (len(template) + _OF_ITS_OWN)
        if len(text) > allowed:
            raise ValueError(
                f"holds a chat of {read:,} characters, of which the template of {self._model} "
                f"makes {len(text):,}: it multiplies a text"
            )

    def _applied(self, messages: list[dict[str, Any]], tools: Any, **options: Any) -> Any:
        """What the tokenizer's ``apply_chat_template`` makes of messages, with its options; a
        ValueError where the template refuses them, or takes too much memory or time.
        """
        from jinja2 import TemplateError

        self._check_template()
        try:
            with bounded():
                return self._tokenizer.apply_chat_template(messages, tools=tools, **options)
        except MemoryError:
            raise ValueError(
                f"holds a chat for which the template of {self._model} takes more memory than it "
                "may: it multiplies a text"
            ) from None
        except TakesTooMuchError as error:
            raise ValueError(
                f"holds a chat for which the template of {self._model} does not end: {error}"
            ) from None
        except (TemplateError, TypeError, ArithmeticError, RecursionError) as error:
            reason = visible_text(" ".join(str(error).split()), _LONGEST_REASON)
            raise ValueError(
                f"holds a chat that the template of {self._model} refuses: {reason}"
            ) from error

    def _check_template(self) -> None:
        """Refuse a tokenizer without a template."""
        if not getattr(self._tokenizer, "chat_template", None):
            raise ValueError(
                f"holds a chat, and the tokenizer of {self._model} has no chat template: write "
                "each chat as training read it to the field text, or save the template with the "
                "tokenizer"
            )

    @cached_property
    def _tokenizer(self) -> Any:
        """The model's tokenizer, loaded where none was given; a ValueError where there is none."""
        from transformers import AutoTokenizer

        from paperlib.models.folders import check_model_folder

        if self._loaded is not None:
            return self._loaded
        check_model_folder(self._model)
        try:
            return AutoTokenizer.from_pretrained(self._model, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"holds a chat, and {self._model} has no tokenizer that could write it as text"
            ) from error


class _Turn(NamedTuple):
    """Messages that the assistant wrote: the index of the first, and of the one behind the last."""

    first: int
    end: int


def _checked(text: LearnedText) -> LearnedText:
    """The text; a ValueError where training took a loss from none of it."""
    if not text.stretches:
        raise ValueError("holds a chat without a turn of the assistant")
    return text


class WrittenSides(NamedTuple):
    """Texts of members and of non-members, and what training took its loss from."""

    members: Sequence[Any]
    nonmembers: Sequence[Any]
    learned: list[LearnedText] | None  #: of both, the members' first; None for whole texts

    @property
    def by_turns(self) -> bool:
        """Whether what training took its loss from was told turn by turn of some text."""
        return any(text.by_turns for text in self.learned or ())


def written_texts(
    tokenizer: Any, rows: Sequence[Any], on: On = "all", *, name: str = "texts"
) -> list[Any]:
    """Rows as the texts that training read: chats, which are mappings, by the template of the
    tokenizer, and texts or token numbers as they are.

    Args:
        tokenizer: Of the model.
        rows: Texts, token numbers, chats as mappings (messages, conversations, or prompt and
            completion), or texts with what training took its loss from.
        on: What training took its loss from. With "completions" rows must be chats or
            `LearnedText`.
        name: Of the rows, for errors.

    Returns:
        An element for each row, in their order. With "all" a chat becomes a string, and other rows
            are as they were; with "completions" each is a `LearnedText`: the text, and which
            stretches of it training took its loss from.

    Raises:
        ValueError: Another ``on``, rows that are one string, a mapping or a table in place of a
            list, or a chat that cannot be written, with its place.

    >>> from paperlib.models.language import train_tokenizer
    >>> tokenizer = train_tokenizer(["Where is it?", "It is here."], 300, context=64)
    >>> tokenizer.chat_template = "{% for turn in messages %}{{ turn.content }}|{% endfor %}"
    >>> chat = {"prompt": "Where is it?", "completion": [{"role": "assistant", "content": "Here."}]}
    >>> written_texts(tokenizer, [chat])
    ['Where is it?|Here.|']
    """
    check_choice("on", on, get_args(On))
    check_list(name, rows)
    model = str(getattr(tokenizer, "name_or_path", "")) or "model"
    template = ChatTemplate(model, tokenizer)
    write = _whole_text if on == "all" else _learned_text
    return [write(template, row, f"{name}[{index}]") for index, row in enumerate(rows)]


def written_sides(
    tokenizer: Any, members: Sequence[Any], nonmembers: Sequence[Any], on: On
) -> WrittenSides:
    """Members and non-members as texts, chats among them by the template of the tokenizer.

    Args:
        tokenizer: Of the model.
        members, nonmembers: Texts, token numbers, chats as mappings, or texts with what training
            took its loss from.
        on: What training took its loss from; "completions" takes chats and such texts alone.

    Raises:
        ValueError: Another ``on``, or a chat that cannot be written, with its place.
    """
    sides = [
        written_texts(tokenizer, rows, on, name=name)
        for name, rows in (("members", members), ("nonmembers", nonmembers))
    ]
    if on == "all":
        return WrittenSides(*sides, learned=None)
    texts = [[text.text for text in side] for side in sides]
    return WrittenSides(*texts, learned=[*sides[0], *sides[1]])


def _whole_text(template: ChatTemplate, row: Any, name: str) -> Any:
    """A chat as text, anything else as it is; a ValueError, which begins with ``name``, for a chat
    that cannot be written.
    """
    if not isinstance(row, Mapping):
        return row
    chat: Mapping[str, Any] = row
    try:
        if not is_chat(chat, "text"):
            raise ValueError(f"holds no chat, only {[*chat]}")
        return template.text(chat, "text")
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def _learned_text(template: ChatTemplate, row: Any, name: str) -> LearnedText:
    """A chat as text with what training took its loss from; a ValueError, which begins with
    ``name``, where it cannot be written or is no chat.
    """
    if isinstance(row, LearnedText):
        return row
    chat: Mapping[str, Any] = row if isinstance(row, Mapping) else {}
    try:
        return template.learned(chat, "text")
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error
