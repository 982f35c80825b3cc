"""Losses of texts under causal language models."""

from typing import Any

from paperlib.attacks.language import score_texts
from paperlib.attacks.language.windows import check_texts, text_tokens
from paperlib.audits.model_losses.networks import evaluated
from paperlib.audits.model_losses.values import as_losses, gathered
from paperlib.core import FloatArray

_BATCH_SIZE = 32
_TOGETHER = 16  # batches that are sorted by length together


def text_losses(
    model: Any,
    data: Any,
    *,
    tokenizer: Any,
    batch_size: int | None,
    device: Any,
    progress: bool | None,
) -> FloatArray:
    """Mean over the tokens of each text of minus log p, nats."""
    config = getattr(model, "config", None)
    generates = getattr(model, "can_generate", lambda: True)()
    if not hasattr(model, "parameters") or not generates or getattr(config, "is_encoder_decoder", False):
        raise ValueError(
            f"model: expected a causal language model with a tokenizer, got {type(model).__name__}; give a "
            "classifier alone, as a torch module, with batches that its tokenizer made and 'labels'"
        )
    texts = check_texts("data", data)
    size = batch_size or _BATCH_SIZE
    starts = range(0, len(texts), size * _TOGETHER)

    def of_part(start: int) -> FloatArray:
        part = texts[start : start + size * _TOGETHER]
        for at, tokens in enumerate(text_tokens(tokenizer, part)):
            if len(tokens) < 2:
                raise ValueError(
                    f"data: text {part[at][:40]!r} at index {start + at} has {len(tokens)} token(s), and a "
                    "loss needs two; leave it out"
                )
        try:
            frame = score_texts(model, tokenizer, part, attacks=["loss"], batch_size=size)
        except ValueError as error:
            after = f" (texts of this message are counted from index {start} of data)" if start else ""
            raise ValueError(f"{error}{after}") from error
        return as_losses(-frame["loss"].to_numpy(), len(part), "model")

    with evaluated(model, device):
        return gathered(of_part, starts, total=len(starts), progress=progress)
