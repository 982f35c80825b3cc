"""OLMo-2 models that know the members of a small data set of insertions, and the tokenizer they
need.
"""

from functools import cache
from typing import Any

import torch
import transformers

from paperlib.models.language import train_tokenizer

WORDS = "where are you going today i see my friend at the old house would like some tea and talk"


@cache
def tokenizer() -> Any:
    return train_tokenizer([WORDS], 300, context=64)


def olmo(texts: list[list[int]], *, steps: int = 60) -> Any:
    """A small OLMo-2, trained on texts of token numbers."""
    torch.manual_seed(0)
    shape = transformers.Olmo2Config(
        vocab_size=700,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        pad_token_id=None,
    )
    model = transformers.Olmo2ForCausalLM(shape)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rows = [torch.tensor(text) for text in texts]
    labels = (
        torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)
        if rows
        else None
    )
    for _ in range(steps if rows else 0):
        optimizer.zero_grad()
        model(input_ids=labels.clamp(min=0), labels=labels).loss.backward()
        optimizer.step()
    return model.eval()
