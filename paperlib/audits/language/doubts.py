"""What makes the number of an audit of a language model doubtful: its tokenizer, its texts, its scores."""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperlib.attacks.dataset_inference import ranks_and_positions
from paperlib.attacks.language.windows import evaluating, text_tokens
from paperlib.bounds import audit_ranks
from paperlib.core import FloatArray
from paperlib.core.direction import NO_ANSWER
from paperlib.core.results import round_down

_WORSE = 0.5  # nats above the loss of guessing: untrained models are hardly above it


def check_writes(**models: Any) -> None:
    """Refuse (ValueError) a model in which a token sees those behind it; None is passed over."""
    from paperlib.models.language import check_causal

    for name, model in models.items():
        if hasattr(model, "get_input_embeddings"):
            with evaluating(model):
                check_causal(model, f"{name}: in it")


def unknown(name: str, model: Any, losses: FloatArray) -> tuple[str, ...]:
    """A warning where most texts have a larger loss than if tokens were guessed at random."""
    embeddings = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    size = getattr(embeddings, "num_embeddings", None)
    if size is None or np.quantile(losses, 0.25) <= np.log(size) + _WORSE:
        return ()
    return (
        f"{name}: most texts have a larger loss than tokens guessed at random, {np.log(size):.3g}: it knows "
        "no such text, or the tokenizer is that of another model, with which no leak is seen",
    )


def look_alikes(texts: Sequence[str], member: NDArray[np.bool_]) -> tuple[str, ...]:
    """A warning where a text stands on both sides, but for white space, upper case or forms of Unicode."""
    plain = [" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in texts]
    ours, others = ({plain[at] for at in np.flatnonzero(side)} for side in (member, ~member))
    if not (both := len(ours & others)):
        return ()
    return (
        f"{both} texts stand on both sides but for white space, upper case or forms of Unicode: what was "
        "learned of a member shows in its copy, and a leak may be missed; leave copies out",
    )


def equal_scores(scores: FloatArray) -> tuple[str, ...]:
    """A warning where most identifiers have the same score as all of their alternatives."""
    equal = int((np.ptp(scores, axis=1) == 0).sum())
    if 2 * equal <= len(scores):
        return ()
    return (
        f"{equal} of {len(scores)} identifiers have the same score as all alternatives, {NO_ANSWER}; look "
        "whether the tokenizer tells them apart",
    )


def tokenizer_tells(tokenizer: Any, candidates: Sequence[Sequence[str]], seed: int) -> tuple[str, ...]:
    """A warning where identifiers have fewer tokens than their alternatives, as in a tokenizer's training."""
    flat = text_tokens(tokenizer, [text for some in candidates for text in some])
    strange = getattr(tokenizer, "unk_token_id", None)  # what is no word of it counts twice
    counts = np.array([len(one) + one.count(strange) for one in flat]).reshape(len(candidates), -1)
    ranks, _ = ranks_and_positions(-counts, np.random.default_rng(seed))
    shown = audit_ranks(ranks, np.full(len(ranks), counts.shape[1]), confidence=0.99).epsilon
    if shown == 0:
        return ()
    return (
        f"identifiers have fewer tokens than alternatives, which alone shows ε ≥ {round_down(shown):.3f}: "
        "the tokenizer has learned them, and the bound is about it as well as about the model",
    )
