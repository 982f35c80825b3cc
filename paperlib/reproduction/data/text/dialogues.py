"""Dialogues between two people, as plain text."""

import gzip
import json

from paperlib.data.files import data_file

PERSONA_CHAT_FILE = "synthetic_persona_chat.jsonl.gz"
PERSONA_CHAT_SHA256 = "a68485886e0fe190221e47a394687c6464a41da5154b173db3223de39139bb14"
SOURCE = (
    "Synthetic-Persona-Chat, Jandaghi et al. (2023), "
    "google-research-datasets/Synthetic-Persona-Chat"
)
LICENCE = "CC BY 4.0"


def persona_chat() -> list[str]:
    """The conversations of Synthetic-Persona-Chat, each a text with every turn on a line of its
    own, behind its speaker, "A: " or "B: ".

    Raises:
        DataUnavailableError: The file is not in the data folder.
        ValueError: It has another content.
    """
    path = data_file("Synthetic-Persona-Chat", PERSONA_CHAT_FILE, PERSONA_CHAT_SHA256, SOURCE)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    conversations: list[str] = []
    for row in rows:
        turns = zip(row["speakers"], row["turns"], strict=True)
        lines = [f"{'AB'[int(speaker) - 1]}: {text}" for speaker, text in turns]
        conversations.append("\n".join(lines))
    return conversations
