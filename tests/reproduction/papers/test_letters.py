"""A letter to the authors of each paper names what fails, with numbers from the runs, and says that
it was not sent.
"""

import re
from pathlib import Path

import pytest

from paperlib.reproduction.exhibits.printed import PAPERS
from paperlib.reproduction.papers.landing import CITED, HEADLINES
from paperlib.reproduction.papers.letters import letters
from paperlib.reproduction.papers.verdict.nulls import nulls_of
from paperlib.reproduction.papers.verdict.outcome import FAILS
from paperlib.reproduction.papers.verdict.pages import best_of, counts_in_words
from paperlib.reproduction.papers.verdict.status import JudgedTarget, judge
from paperlib.reproduction.running.book import measured_evidence
from paperlib.reproduction.running.project import Project

ROOT = Path(__file__).parents[3]
FINDINGS = {slug: {"finding": "A title", "sentence": f"On {slug}."} for slug in HEADLINES.values()}
NUMBER = re.compile(r"(?<![\w-])\d+(?:\.\d+)?(?!\w)")


@pytest.fixture(scope="module")
def judged() -> list[JudgedTarget]:
    return best_of(judge([], measured_evidence(Project(ROOT))))


@pytest.mark.parametrize("paper", PAPERS)
def test_a_letter_counts_and_names_every_failing_row_and_no_other_row(paper, judged):
    text = letters(judged, findings=FINDINGS)[paper]
    of_paper = [entry for entry in judged if entry.rule.paper == paper]
    assert text.startswith(counts_in_words(of_paper))
    failing = [entry for entry in of_paper if entry.outcome.word in FAILS]
    chips = re.findall(r"\{ref\}`[^<]+<result-([a-z0-9-]+)>` \[\S+ ([a-z ]+)\]\{", text)
    assert chips == [(entry.rule.target, entry.outcome.word) for entry in failing]
    for entry in failing:
        closest = entry.outcome.closest
        assert closest is not None
        line = next(line for line in text.splitlines() if f"-{entry.rule.target}>" in line)
        assert f"{closest.mean:.3g}" in line
    assert f"On {HEADLINES[paper]}." in text
    assert f"On {HEADLINES[paper]}." not in letters(judged, findings={})[paper]


def test_the_letter_on_panoramia_alone_names_the_largest_null_above_its_margin(judged):
    texts = letters(judged, findings={})
    largest = nulls_of(judged)[0].contrast
    null = f"{largest.mean:.2f} [{largest.low:.2f}, {largest.high:.2f}] nats"
    assert [paper for paper, text in texts.items() if null in text] == ["panoramia"]
    assert all("{ref}`the nulls" not in text for text in letters(judge([]), findings={}).values())


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_is_not_yet_sent_and_takes_its_numbers_from_the_runs(paper):
    page = (ROOT / "book" / "letters" / f"to_{paper}.md").read_text(encoding="utf-8")
    assert "\nDate: not yet sent.\n" in page
    assert f"{{cite:t}}`{CITED[paper]}`" in page
    assert f"```{{include}} ../_generated/letters/{paper}.md" in page
    prose = re.sub(r"`[^`]*`|^\d+\. |O\(1\)|Purchase-100", "", page, flags=re.MULTILINE)
    named = re.compile(r"(?:Tables?|Figures?|Propositions?) [\d, ]+(?:(?:and|to) \d+)?")
    assert not NUMBER.findall(named.sub("", prose))
