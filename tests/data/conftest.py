"""A folder of data of its own for each test."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    return tmp_path
