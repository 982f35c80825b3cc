"""Scores, results and argument checks, shared by every other room."""

# pyright: basic
import lazy_loader  # without types

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
