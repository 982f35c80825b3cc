"""Attacks that are trained: what tells members from generated points, with and without the target's
help.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
