"""From scores or counts to epsilon: pure functions, one module per family of bounds.

Names are imported when they are first used, so that an audit loads the family of its bound alone.
"""

# pyright: basic
import lazy_loader  # without types

from paperlib.core.earlier_names import with_earlier_names

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_earlier_names(__name__, _load)
