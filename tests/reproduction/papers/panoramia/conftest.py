"""What the tests of a module keep on disk is theirs alone."""

import pytest

from paperlib.reproduction.papers.panoramia.tables.pools import tabular_rows
from paperlib.reproduction.papers.panoramia.text.pools import text_bench


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for kept in (tabular_rows, text_bench):  # in memory, of another folder
            kept.cache_clear()
        yield
