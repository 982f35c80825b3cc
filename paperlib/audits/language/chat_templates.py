"""Chats in the forms of fine-tuning data, as the text that training saw: by the model's own
template.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

_ROLES = {"human": "user", "gpt": "assistant"}  # of conversations, as templates name them


class ChatTemplate:
    """Writes chats as text with the template of a model's tokenizer, which is loaded for the first
    one.

    A chat is a record with a list of ``messages`` (role and content), of ``conversations`` (from
    and value), or with ``prompt`` and ``completion``, two texts or two lists of messages.

    Source:
        The dataset formats of the library TRL; conversations are those of ShareGPT.
    """

    def __init__(self, model: str) -> None:
        self._model = model

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
        return self._rendered(_messages(row, field), row.get("tools"))

    def _rendered(self, messages: list[dict[str, Any]], tools: Any) -> str:
        """Messages as the tokenizer writes them, without a start of the next answer."""
        from jinja2 import TemplateError

        if not getattr(self._tokenizer, "chat_template", None):
            raise ValueError(
                f"holds a chat, and the tokenizer of {self._model} has no chat template: write "
                "each chat as training read it to the field text, or save the template with the "
                "tokenizer"
            )
        try:
            text = self._tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
        except (TemplateError, TypeError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"holds a chat that the template of {self._model} refuses: {reason}"
            ) from error
        return str(text)

    @cached_property
    def _tokenizer(self) -> Any:
        """The model's tokenizer."""
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(self._model)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"holds a chat, and {self._model} has no tokenizer that could write it as text"
            ) from error


def is_chat(row: Mapping[str, Any], field: str) -> bool:
    """Whether a record has no text in ``field`` but a chat, there or in a usual field."""
    if isinstance(row.get(field), str):
        return False
    if any(isinstance(row.get(name), list) for name in (field, "messages", "conversations")):
        return True
    return all(isinstance(row.get(name), str | list) for name in ("prompt", "completion"))


def _messages(row: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """The messages of a chat, each with role and content."""
    if isinstance(row.get(field), list):
        messages = row[field]
    elif isinstance(row.get("messages"), list):
        messages = row["messages"]
    elif isinstance(row.get("conversations"), list):
        messages = row["conversations"]
    else:
        messages = [*_listed(row["prompt"], "user"), *_listed(row["completion"], "assistant")]
    return [_message(message) for message in messages]


def _listed(value: Any, role: str) -> list[Any]:
    """Messages as they are; a text as one message of ``role``."""
    return [{"role": role, "content": value}] if isinstance(value, str) else list(value)


def _message(message: Any) -> dict[str, Any]:
    """A message with role and content; those of conversations have from and value."""
    if isinstance(message, Mapping):
        if "role" in message:
            return dict(message)
        if isinstance(message.get("from"), str) and "value" in message:
            role = _ROLES.get(message["from"], message["from"])
            return {"role": role, "content": message["value"]}
    raise ValueError(
        "holds a chat with a message that has neither role and content, nor from and value: "
        f"{str(message)[:40]!r}"
    )
