"""A report that answers the questions of a public text: page, JSON and receipt."""

import html
import json

import jsonschema
import numpy as np
import pytest

from paperlib.audits import audit_scores, verify_receipt
from paperlib.core import MembershipScores
from paperlib.report.audit.about import result_schema
from paperlib.words.audits.questions.texts import question_text
from tests.refusals import refused
from tests.report.test_receipt import audited

SCORES = MembershipScores(
    np.random.default_rng(0).normal(2, 1, 100), np.random.default_rng(1).normal(0, 1, 100)
)


def test_page_and_json_have_the_same_rows_and_neither_has_any_without_the_option():
    document = audit_scores(SCORES).document(questions=["aisvs", "edpb"])
    content = document.to_dict()
    jsonschema.validate(content, result_schema())
    rows, page = content["questions"], document.html()
    assert [row["text"] for row in rows] == ["aisvs"] * 15 + ["edpb"] * 20
    for row in rows:
        for name in ("place", "question", "shows", "cannot_show", "missing"):
            assert html.escape(row[name], quote=False) in page.replace("&#39;", "'")
    assert page.index("OWASP AISVS 1.0") < page.index("Questions of EDPB")
    assert "This is no legal advice" in page
    assert question_text("edpb").version in page
    plain = audit_scores(SCORES).document()
    assert "questions" not in plain.to_dict()
    assert "no legal advice" not in plain.html()


def test_an_audit_that_is_no_answer_shows_no_number_in_any_row():
    turned = MembershipScores(SCORES.nonmember, SCORES.member)
    rows = audit_scores(turned).document(questions="nist-226").to_dict()["questions"]
    assert rows[0]["shows"] == "Not shown: the number is no answer (reversed)."
    assert not any("at least" in row["shows"] for row in rows)


def test_a_receipt_holds_the_choice_of_texts_and_every_row_is_compared(tmp_path):
    audits, hashes = audited()
    document = audits.document(questions=("edpb", "nist-226"))
    page, path = document.html(), tmp_path / "receipt.html"
    path.write_text(page, encoding="utf-8")
    assert verify_receipt(path, **hashes).headline.epsilon == audits.headline.epsilon
    shows = document.question_rows[1].shows
    assert "A leak" in shows
    path.write_text(page.replace(f"<td>{shows}</td>", "<td>No leak.</td>"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"under “Questions of EDPB .*No leak"):
        verify_receipt(path)
    held = json.loads(document.receipt["report"])
    assert held["questions"] == ["edpb", "nist-226"]
    assert "questions" not in json.loads(audits.document().receipt["report"])


@pytest.mark.parametrize("name", ["gdpr", "../../about", "edpb\n"])
def test_a_text_that_is_not_known_is_refused_before_a_file_is_read(name):
    refused("questions: expected one of", audit_scores(SCORES).document, questions=[name])
