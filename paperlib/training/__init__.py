"""Training: one model, many at once, with and without differential privacy.

Names are loaded when they are first used, so that accounting does not wait for torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
