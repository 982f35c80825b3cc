"""The folder of data of each test, as for corpora."""

from tests.data.conftest import folder as folder
