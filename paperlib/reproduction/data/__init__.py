"""Data sets of the papers as arrays, with source, licence and checksum: by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
