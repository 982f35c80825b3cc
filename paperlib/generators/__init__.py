"""Generators of non-members: examples that could have been trained on, and were not.

Names are loaded when they are first used, so that generating tables does not wait for torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
