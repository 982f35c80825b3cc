"""Natural identifiers: find them, draw others from the same source, and drop look-alikes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
