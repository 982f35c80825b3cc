"""Packs of digests from lock files; from an index: `tests/cli/test_identifiers.py`."""

import json

from paperlib.data import read_documents
from paperlib.data.text.packages import write_pack


def test_lock_files_give_their_digests_each_behind_its_package(tmp_path):
    digests = ["sha512-" + "q" * 86 + "==", *(str(at) * 64 for at in range(7))]
    package = {"version": "1.3.0", "integrity": digests[0]}
    files = ", ".join(f'{{file = "b-{at}.whl", hash = "sha256:{digests[at]}"}}' for at in (1, 2))
    hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in digests[6:])
    texts = {
        "package-lock.json": json.dumps({"packages": {"": {}, "node_modules/a": package}}),
        "poetry.lock": f'[[package]]\nname = "b"\nversion = "2"\nfiles = [{files}]\n',
        "uv.lock": f"""[[package]]
name = "e"
version = "5"
sdist = {{ url = "https://host/e.tar.gz", hash = "sha256:{digests[3]}", size = 1 }}
wheels = [
    {{ url = "https://host/e.whl", hash = "sha256:{digests[4]}", size = 1 }},
    {{ url = "https://host/other.whl" }},
]

[[package]]
name = "mine"
source = {{ editable = "." }}
""",
        "Cargo.lock": f"""[[package]]
name = "f"
version = "6"
source = "registry+https://host"
checksum = "{digests[5]}"

[[package]]
name = "mine"
version = "0.1.0"
""",
        "requirements.txt": f"# made\nc==3{hashes}\nd==4\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    write_pack(tmp_path / "p.jsonl.gz", locks=[tmp_path / name for name in texts])
    places = (
        "node_modules/a",
        "b-1.whl",
        "b-2.whl",
        "/e.tar.gz",
        "/e.whl",
        'source = "regis',
        "c==3",
        "c==3",
    )
    for document, digest, place in zip(
        read_documents(tmp_path / "p.jsonl.gz"), digests, places, strict=True
    ):
        assert document.text.endswith(digest)
        assert place in document.text
        assert [other for other in digests if other in document.text] == [digest]
