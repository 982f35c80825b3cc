"""The ``paperlib`` command."""

from paperlib.cli.guard import main as main
