"""A folder that gets a file for every finished execution of a sweep's job."""

import pytest


@pytest.fixture
def trace(tmp_path):
    folder = tmp_path / "trace"
    folder.mkdir()
    return str(folder)
