"""The commands of a checkout: ``paperlib run``, ``list`` and ``sweep``."""
