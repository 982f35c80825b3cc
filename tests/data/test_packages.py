"""Packs of digests, as documents; the command: `tests/cli/test_identifiers.py`."""

import json

from paperlib.data import read_documents
from paperlib.data.text.packages import write_pack


def test_the_reader_of_documents_takes_a_pack_with_one_digest_a_document(tmp_path):
    digests = [str(digit) * 64 for digit in range(3)]
    files = [
        {
            "filename": f"a-{version}.whl",
            "digests": {"sha256": digest},
            "upload_time_iso_8601": f"202{version}-01-01T00:00:00Z",
        }
        for version, digest in enumerate(digests)
    ]
    (tmp_path / "a-b").mkdir()
    (tmp_path / "a-b" / "json").write_text(json.dumps({"releases": {"1": files}}))
    pack = write_pack(tmp_path / "p.jsonl.gz", ["A_b"], index=tmp_path.as_uri())
    assert [entry["day"] for entry in pack.entries] == ["2020-01-01", "2021-01-01", "2022-01-01"]
    documents = list(read_documents(tmp_path / "p.jsonl.gz"))
    for document, digest, file in zip(documents, digests, files, strict=True):
        assert document.text.endswith(digest)
        assert file["filename"] in document.text
        assert [other for other in digests if other in document.text] == [digest]
