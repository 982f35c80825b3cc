"""What the book asks readers to cite is what CITATION.cff says, and every entry leads to its paper."""

import re
from pathlib import Path

import pytest
import yaml

import paperlib

ROOT = Path(__file__).parents[2]
CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CITE = (ROOT / "book" / "cite.md").read_text(encoding="utf-8")
BIB = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}$", BIB, re.DOTALL | re.MULTILINE))
ADDRESS = re.compile(r"^  (?:url = \{https?://\S+\}|doi = \{10\.\S+\}),$", re.MULTILINE)


def test_the_entry_for_the_book_is_that_of_the_citation_file_and_the_others_are_in_the_bibliography():
    (entry,) = re.findall(r"^@software\{.*?^\}$", CITE, re.DOTALL | re.MULTILINE)
    fields = dict(re.findall(r"^  (\w+) = \{(.*)\},$", entry, re.MULTILINE))
    assert fields == {
        "title": CFF["title"],
        "author": "{" + " and ".join(one["name"] for one in CFF["authors"]) + "}",
        "version": CFF["version"],
        "year": str(CFF["date-released"].year),
        "note": f"License: {CFF['license']}",
    }
    assert CFF["version"] == paperlib.__version__
    shown = re.findall(r':start-at: "\{(\w+)"', CITE)
    assert len(shown) == 5
    assert set(shown) <= set(ENTRIES)


def test_every_entry_has_an_address():
    assert [key for key, entry in ENTRIES.items() if not ADDRESS.search(entry)] == []


@pytest.mark.parametrize("paper", ["panoramia", "epsilon_star", "natural_identifiers", "output_sets"])
def test_the_page_of_a_paper_links_it_and_lists_its_notebooks(paper):
    page = (ROOT / "book" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    (cited,) = re.findall(r"^The paper: \{cite:t\}`(\w+)`", page, re.MULTILINE)
    address = re.search(r"url = \{(\S+)\}", ENTRIES[cited])
    assert address is not None
    assert f"]({address[1]})" in page
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    (own,) = [one for part in toc["parts"] for one in part["chapters"] if one["file"] == f"papers/{paper}"]
    companions = page.partition("## Companions")[2].partition("\n## ")[0]
    assert [one["file"] for one in own["sections"] if f"](../{one['file']})" not in companions] == []
