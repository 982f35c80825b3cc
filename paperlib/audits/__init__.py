"""Audits of what a user brings: scores, a language model with a corpus, a model with its training
data.

Names are imported when they are first used, so that an audit of scores does not wait for torch.
"""

import lazy_loader

from paperlib.core.earlier_names import with_earlier_names

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_earlier_names(__name__, _load)
