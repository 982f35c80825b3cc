"""Small language models with random weights, and where a text begins behind its context."""

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

MODELS = {
    "gpt2": (GPT2Config, GPT2LMHeadModel, {"bos_token_id": 0, "eos_token_id": 0}),
    "llama": (LlamaConfig, LlamaForCausalLM, {"intermediate_size": 48}),
    "lfm2": (Lfm2Config, Lfm2ForCausalLM, {"layer_types": ["conv", "full_attention"]}),
    "roberta": (RobertaConfig, RobertaForMaskedLM, {"intermediate_size": 32}),
}


def tiny(kind, *, context, vocabulary=400, layers=2, heads=4, seed=0):
    """A model left in training mode; its weights are large, so that its predictions differ from
    uniform.
    """
    config, model, more = MODELS[kind]
    torch.manual_seed(seed)
    shape = {"vocab_size": vocabulary, "hidden_size": 32, "max_position_embeddings": context}
    shape |= {"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": 2}
    made = model(config(**shape | more))
    for parameter in made.parameters():
        parameter.data.mul_(4.0)
    return made


def placed(tokenizer, text, context=""):
    """Tokens of the context and the text, and the place of the first one that is scored."""
    output = tokenizer(context + text, return_offsets_mapping=True, verbose=False)
    ends = [end for _, end in output["offset_mapping"]]
    first = next(i for i, end in enumerate(ends) if end > len(context)) if context else 1
    return output["input_ids"], max(1, first)
