"""Training: one model, many at once, with and without differential privacy; a name loads on first
use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
