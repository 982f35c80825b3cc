"""`audit.yaml`: read as text, checked by its schema, refused in one line that says what is
allowed.
"""

import re
from pathlib import Path

import jsonschema
import pytest

from paperlib.report.audit.about import About, about_schema, read_about, result_schema
from tests.refusals import refused

FULL = """\
model: credit-forest
version: 2.10
owner: Risk team
trained: 2025-03-01
data: "Loans, 2019 to 2024"
contact: privacy@example.org
notes: |
  Two lines,
  as written.
"""


@pytest.fixture
def written(tmp_path):
    def write(text: str | bytes) -> Path:
        path = tmp_path / "audit.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_every_field_is_read_as_it_was_written_none_has_to_be_given_and_no_code_is_run(
    written, tmp_path
):
    about = read_about(written(FULL))
    assert about == About(
        model="credit-forest",
        version="2.10",
        owner="Risk team",
        trained="2025-03-01",
        data="Loans, 2019 to 2024",
        contact="privacy@example.org",
        notes="Two lines,\nas written.\n",
    )
    for text in ("", "# nothing yet\n", "---\n", "model:\n", 'trained: ""\n'):
        assert read_about(written(text)) == About()
    assert read_about(written(b"\xef\xbb\xbfmodel: a\r\nowner: b\r\n")) == About(
        model="a", owner="b"
    )
    refused("none.yaml: cannot be read: No such file", read_about, tmp_path / "none.yaml")
    assert read_about(written("model: !!python/object/apply:os.system x\n"))


def test_a_wrong_file_is_refused_in_one_line_with_its_name(written):
    for text, message in (
        (
            "modle: a\n",
            "unknown key 'modle'; allowed are model, version, owner, .*did you mean 'model'?",
        ),
        ("trained: 2024-02-31\n", "trained: expected a date as YYYY-MM-DD, .*got '2024-02-31'"),
        ("trained: 2024-02-01 10:00:00\n", "trained: expected a date as YYYY-MM-DD"),
        ("trained: 20240201\n", "trained: expected a date as YYYY-MM-DD"),
        ("data: [a, b]\n", "data: expected text, got a list"),
        ("owner:\n  name: a\n", "owner: expected text, got keys of its own"),
        ("- model\n- owner\n", "expected lines of the form 'key: value', got a list"),
        ("just words\n", "expected lines of the form 'key: value', got 'just words'"),
        ("model: a\nmodel: b\n", "model: given 2 times; keep one"),
        ("model: a\nnotes: b: c\n", "not YAML in line 2"),
        (f"model: {'a' * 301}\n", "model: expected at most 300 characters, got 301"),
        ("? [a, b]\n: c\n", "expected lines of the form 'key: value'|not YAML"),
        (b"model: \xff\xfe", "it is not UTF-8 text"),
    ):
        path = written(text)
        refused(f"^{re.escape(str(path))}: .*({message})", read_about, path)


def test_the_schema_describes_every_field_of_the_record():
    schema = about_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(About().to_dict())
    assert all(one["title"] and one["description"] for one in schema["properties"].values())
    assert schema["additionalProperties"] is False
    jsonschema.validate(About(model="a", trained="2025-03-01").to_dict(), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"trained": "yesterday"}, schema)
    jsonschema.Draft202012Validator.check_schema(result_schema())
    with pytest.raises(jsonschema.ValidationError, match="is a required property"):
        jsonschema.validate({}, result_schema())
