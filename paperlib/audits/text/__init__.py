"""Audits of language models, by identifiers of their corpora and by texts."""
