"""Audit the privacy of machine-learning models without retraining them.

The names of this package are loaded when they are first used, so that ``import paperlib`` stays
fast.

>>> from paperlib import MembershipScores, audit_one_run
>>> scores = MembershipScores(member=range(20, 60), nonmember=range(40))
>>> print(audit_one_run(scores, design="game").headline)
ε ≥ 1.200 (δ = 0, confidence 0.95; 13 of 13 guesses right, 40 examples)
"""

import lazy_loader

from paperlib.core.earlier_names import with_earlier_names

__version__ = "1.0.0rc1"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_earlier_names(__name__, _load)
