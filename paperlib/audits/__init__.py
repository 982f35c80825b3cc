"""Audits of what a user brings: scores, a language model with a corpus, a model with its training
data.

Names are imported when they are first used, so that an audit of scores does not wait for torch.
"""

import lazy_loader

from paperlib.core.earlier_names import with_earlier_names

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_EARLIER = {
    "AuditData": "paperlib.audits.panoramia.audit",
    "AuditDocument": "paperlib.audits.document",
    "Audits": "paperlib.audits.score_results",
    "CandidateScores": "paperlib.audits.candidates",
    "ChatAudit": "paperlib.audits.language.chat",
    "ChatQuestion": "paperlib.audits.language.chat",
    "ChatResult": "paperlib.audits.language.chat",
    "DpCheck": "paperlib.audits.dp_training.checks",
    "DpTrainingAudit": "paperlib.audits.dp_training.audit",
    "FeaturesResult": "paperlib.audits.features",
    "FoundIdentifier": "paperlib.audits.language.corpus",
    "ImageDefaults": "paperlib.audits.panoramia.images",
    "LanguageModelAudit": "paperlib.audits.language.language_model",
    "PanoramiaAudit": "paperlib.audits.panoramia.audit",
    "ReleaseAudit": "paperlib.audits.releases.audit",
    "ScoreAudit": "paperlib.audits.score_results",
    "SealedPlan": "paperlib.audits.planned.sealed_plan",
    "TextDefaults": "paperlib.audits.panoramia.text",
    "TextsAudit": "paperlib.audits.language.texts",
    "corpus_identifiers": "paperlib.audits.language.corpus",
    "open_corpus": "paperlib.audits.language.corpus",
}
"""Names that this package exported until 1.0.0rc1, and where they are."""

__getattr__ = with_earlier_names(__name__, _load, _EARLIER)
