"""Attacks: from losses and log-probabilities to membership scores.

Names are loaded when they are first used, so that attacks on scores do not wait for torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
