"""Chats in the forms of fine-tuning data: what is one, its messages, and its last answer."""

from collections.abc import Mapping
from typing import Any

_ROLES = {"human": "user", "gpt": "assistant"}  # of conversations, as templates name them


def is_chat(row: Mapping[str, Any], field: str) -> bool:
    """Whether a record has no text in ``field`` but a chat, there or in a usual field."""
    if isinstance(row.get(field), str):
        return False
    if any(isinstance(row.get(name), list) for name in (field, "messages", "conversations")):
        return True
    return all(isinstance(row.get(name), str | list) for name in ("prompt", "completion"))


def is_pair(row: Mapping[str, Any], field: str) -> bool:
    """Whether the messages of a chat are those of its prompt and of its completion."""
    return not any(isinstance(row.get(name), list) for name in (field, "messages", "conversations"))


def last_answer(row: Mapping[str, Any]) -> str | None:
    """The completion of a record, or what its last message of the assistant says; None where there
    is none, or no text.
    """
    if isinstance(row.get("completion"), str):
        return row["completion"]
    _, message = _last_answer(row)
    content = None if message is None else _message(message)["content"]
    return content if isinstance(content, str) else None


def with_last_answer(row: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A record of which `last_answer` is a text, with another text in its place and its form
    kept: a copy, of which only the message of that answer is new.
    """
    if isinstance(row.get("completion"), str):
        return {**row, "completion": text}
    field, answer = _last_answer(row)
    messages: list[Any] = []
    for message in row[field]:
        if message is answer:
            name = "content" if "role" in message else "value"
            messages.append({**message, name: text})
        else:
            messages.append(message)
    return {**row, field: messages}


def _last_answer(row: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """The first field that holds messages, and the last of them that is the assistant's, in its own
    form; None for a message, and an empty name for a field, where there is none.
    """
    for field in ("messages", "conversations", "completion"):
        messages = row.get(field)
        if not isinstance(messages, list):
            continue
        answers = [message for message in messages if _message(message)["role"] == "assistant"]
        return field, answers[-1] if answers else None
    return "", None


def messages_of(row: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """The messages of a chat, each with role and content, from ``field`` or the first usual field
    that holds a list; else the prompt, then the completion.

    Raises:
        ValueError: A message that has neither role and content, nor from and value.
        KeyError: A record that `is_chat` does not know.
    """
    if isinstance(row.get(field), list):
        messages = row[field]
    elif isinstance(row.get("messages"), list):
        messages = row["messages"]
    elif isinstance(row.get("conversations"), list):
        messages = row["conversations"]
    else:
        messages = [*listed(row["prompt"], "user"), *listed(row["completion"], "assistant")]
    return [_message(message) for message in messages]


def listed(value: Any, role: str) -> list[Any]:
    """Messages as they are; a text as one message of ``role``."""
    return [{"role": role, "content": value}] if isinstance(value, str) else list(value)


def _message(message: Any) -> dict[str, Any]:
    """A message with role and content, whether it was in this form or has from and value, as those
    of conversations; a ValueError for any other.
    """
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
