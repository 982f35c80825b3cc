"""Labels in the tables of the benchmark, shared by those that make and those that judge them."""

from collections.abc import Mapping

TOKENS = "tokens"
"""The number of tokens of a string, as a score: what the tokenizer alone gives away, without a
model.
"""
DIFFERENCE = "large less small"
"""Name of the rows with the difference in AUC of two models on the same identifiers."""
PAPER_MODELS = {
    "large": "Pythia-12b",
    "medium": "Pythia-6.9b",
    "small": "Pythia-2.8b",
    "one pass": "OLMo-7B",
}
"""Our small models and the models of the paper whose tables they stand beside."""

PAPER_TABLES: Mapping[str, Mapping[str, int]] = {
    "auc": {"large": 1, "medium": 4, "small": 5, "one pass": 3},
    "tpr": {"large": 6, "medium": 7, "small": 8, "one pass": 9},
}
"""The paper's table that each of our models stands beside, by metric."""
