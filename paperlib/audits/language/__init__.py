"""Audits of language models, by identifiers of their corpora and by texts; a name loads on first
use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
