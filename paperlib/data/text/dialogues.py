"""Dialogues between two people, as plain text."""

import gzip
import json

from paperlib.data.errors import unavailable
from paperlib.io import data_folder, file_sha256

PERSONA_CHAT_FILE = "synthetic_persona_chat.jsonl.gz"
PERSONA_CHAT_SHA256 = "a68485886e0fe190221e47a394687c6464a41da5154b173db3223de39139bb14"
SOURCE = "Synthetic-Persona-Chat, Jandaghi et al. (2023), google-research-datasets/Synthetic-Persona-Chat"
LICENCE = "CC BY 4.0"


def persona_chat() -> list[str]:
    """The conversations of Synthetic-Persona-Chat, each turn on a line of its own with its speaker.

    Raises:
        DataUnavailableError: The file is not in the data folder.
        ValueError: It is another file.
    """
    folder = data_folder()
    path = folder / PERSONA_CHAT_FILE
    if not path.is_file():
        raise unavailable("Synthetic-Persona-Chat", PERSONA_CHAT_FILE, folder, f"its source ({SOURCE})", [])
    if (digest := file_sha256(path)) != PERSONA_CHAT_SHA256:
        raise ValueError(f"{PERSONA_CHAT_FILE}: expected sha256 {PERSONA_CHAT_SHA256}, got {digest}")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [_conversation(json.loads(line)) for line in lines]


def _conversation(row: dict[str, list[str]]) -> str:
    turns = zip(row["speakers"], row["turns"], strict=True)
    return "\n".join(f"{'AB'[int(speaker) - 1]}: {text}" for speaker, text in turns)
