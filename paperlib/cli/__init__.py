"""The ``paperlib`` command."""

from paperlib.cli.app import main as main
