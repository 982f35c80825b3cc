"""Audits of what a user brings: scores, a language model with a corpus, a model with its training data.

Names are imported when they are first used, so that an audit of scores does not wait for torch.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    "candidates": ("CandidateScores",),
    "corpus": ("FoundIdentifier", "corpus_identifiers", "open_corpus"),
    "language": ("LanguageModelAudit", "audit_language_model"),
    "panoramia.brought": ("AuditData", "PanoramiaAudit", "audit_model"),
    "panoramia.images": ("ImageDefaults", "audit_images", "bring_images"),
    "panoramia.table": ("audit_table", "bring_table"),
    "panoramia.text": ("TextDefaults", "audit_text", "bring_text"),
    "scores": ("Audits", "ScoreAudit", "audit_scores"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_MODULES)
