"""Audits of language models, by identifiers of their corpora, by texts and through a chat."""
