"""Corpora and their texts, and data as arrays; who is trained on, by fair coins."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
