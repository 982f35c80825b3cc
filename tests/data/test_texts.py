"""WikiText in the official layout and packed, and texts by name."""

import gzip
import hashlib

import pytest

from paperlib.data.files import DataUnavailableError
from paperlib.data.text import sets as texts

SAMPLE = (
    " \n = Lobster = \n \n A <unk> of the sea . \n \n = = Range = = \n \n Cold water . \n \n"
    " = Ship = \n \n Afloat . \n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    return tmp_path


def test_the_official_layout_is_read_by_article(folder):
    (folder / "wikitext-103").mkdir()
    (folder / "wikitext-103" / "wiki.train.tokens").write_text(SAMPLE)
    found = texts.text_documents("wikitext103")
    assert [text.split("\n")[0] for text in found] == [" = Lobster = ", " = Ship = "]
    assert "= = Range = =" in found[0]
    with pytest.raises(DataUnavailableError, match=r"wikitext-2/wiki\.train\.tokens"):
        texts.text_documents("wikitext2")
    (folder / "wikitext-103" / "wiki.train.tokens").write_text("no title here \n")
    with pytest.raises(ValueError, match=r"wiki\.train\.tokens: expected articles"):
        texts.text_documents("wikitext103")


def test_packed_parts_are_checked_and_joined(folder, monkeypatch):
    packed = gzip.compress(SAMPLE.encode(), mtime=0)
    digest = hashlib.sha256(packed).hexdigest()
    with pytest.raises(DataUnavailableError, match="wikitext2_valid"):
        texts.text_documents("wikitext2_held_out")
    for name in texts.SHA256S:
        (folder / name).write_bytes(packed)
    with pytest.raises(ValueError, match="SHA-256"):
        texts.text_documents("wikitext2_held_out")
    monkeypatch.setattr(texts, "SHA256S", dict.fromkeys(texts.SHA256S, digest))
    assert len(texts.text_documents("wikitext2_held_out")) == 4


def test_help_topics_are_cut_without_losing_text():
    from pydoc_data.topics import topics

    pieces = texts.help_topics()
    assert sum(map(len, pieces)) <= sum(map(len, topics.values()))
    assert sum(len(piece.split()) for piece in pieces) == sum(len(topic.split()) for topic in topics.values())


def test_docstrings_are_found_at_every_depth(tmp_path, monkeypatch):
    long = "word " * 50
    (tmp_path / "one.py").write_text(
        f'"""{long}"""\nclass A:\n    """{long}a"""\n    def f(self):\n        """{long}f"""\n'
        f'        async def g():\n            """{long}g"""\n    def h(self):\n        """short"""\n'
    )
    (tmp_path / "broken.py").write_text("def (:")
    monkeypatch.setattr(texts.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    assert [text.strip()[-1] for text in texts.docstrings()] == ["d", "a", "f", "g"]


def test_any_file_is_a_text(tmp_path):
    (tmp_path / "notes.jsonl").write_text('{"text": "first"}\n{"text": "second"}\n')
    assert texts.text_documents(str(tmp_path / "notes.jsonl")) == ["first", "second"]
    with pytest.raises(ValueError, match="corpus"):
        texts.text_documents("wikitext104")
