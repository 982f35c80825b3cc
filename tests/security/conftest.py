"""The command in this process, as the tests of the command have it."""

from tests.cli.conftest import command as command
from tests.cli.conftest import here as here
