"""What Sphinx adds to pages, seen on a small book with the real configuration, and what readers
cite.
"""

import copy
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from bs4 import BeautifulSoup

import paperlib

ROOT = Path(__file__).parents[2]
CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CONFIG = yaml.safe_load((ROOT / "book" / "_config.yml").read_text(encoding="utf-8"))
TABLE = "```{table} Sizes.\n:name: tbl-%s\n\n| n |\n| --- |\n| 1 |\n```\n\n"
SENTENCE = "The first sentence of the page's text with words & more than a few."
PAGES = {
    "index": f"# Small book\n\nShort. {SENTENCE} {{numref}}`tbl-b`, {{prf:ref}}`thm-a`\n\n"
    + TABLE % "a",
    "guide": "# A guide\n\n"
    + TABLE % "b"
    + TABLE % "c"
    + "```python\nfrom paperlib.bounds import exposure\nexposure(1, 2)\n```\n\n"
    + "".join(
        f":::{{prf:theorem}} {name}\n:label: thm-{name}\n\nIt holds.\n:::\n\n" for name in "ab"
    ),
    "changelog": (ROOT / "book" / "changelog.md").read_text(encoding="utf-8"),
    "api/ranks": (
        "# Ranks\n\n```{eval-rst}\n.. names:: paperlib.bounds\n\n   exposure\n   audit_ranks\n```\n"
    ),
    "api/used_in": (ROOT / "book" / "api" / "used_in.md").read_text(encoding="utf-8"),
}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The folder of the small book, in a copy of what the real one needs."""
    pytest.importorskip("sphinx_proof", reason="requirements.lock has it: make installs it")
    root = tmp_path_factory.mktemp("small")
    book = root / "book"
    (book / "api").mkdir(parents=True)
    for name, text in PAGES.items():
        (book / f"{name}.md").write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "CHANGELOG.md", root)
    for name in ("references.bib", "llms.txt"):
        shutil.copy(ROOT / "book" / name, book)
    for name in ("book/_ext", "book/_static", "paperlib"):
        (root / name).symlink_to(ROOT / name)
    chapters = [{"file": name} for name in PAGES if name != "index"]
    toc = {"format": "jb-book", "root": "index", "chapters": chapters}
    (book / "_toc.yml").write_text(yaml.safe_dump(toc))
    return book


@pytest.fixture(scope="module")
def built(book):
    """Build the small book with settings; pages by name."""

    def build(base="", answer=""):
        config = copy.deepcopy(CONFIG)
        assert (config["html"]["baseurl"], config["sphinx"]["config"]["answer_url"]) == ("", "")
        config["html"]["baseurl"], config["sphinx"]["config"]["answer_url"] = base, answer
        (book / "_config.yml").write_text(yaml.safe_dump(config))
        command = [
            Path(sys.executable).with_name("jupyter-book"),
            "build",
            str(book),
            "-W",
            "--keep-going",
        ]
        done = subprocess.run([*command, "-q"], capture_output=True, text=True, cwd=book.parent)
        assert done.returncode == 0, done.stderr[-2000:]
        html = book / "_build" / "html"
        texts = {name: (html / f"{name}.html").read_text("utf-8") for name in PAGES}
        return {name: BeautifulSoup(text, "html.parser") for name, text in texts.items()}

    return build


def tags(page):
    found = page.find_all("meta", content=True)
    return {str(one.get("name") or one.get("property")): str(one["content"]) for one in found}


def numbers(page):
    return [one.get_text().strip() for one in page.select(".caption-number")]


def test_pages_are_numbered_list_their_uses_and_show_no_address_that_is_not_set(built):
    pages = built()
    assert numbers(pages["index"]) == ["Table 1"]
    assert numbers(pages["guide"]) == ["Table 1.1", "Table 1.2", "Theorem 1.1", "Theorem 1.2"]
    assert (
        pages["index"].select_one("article p a[href='guide.html#tbl-b']").get_text() == "Table 1.1"
    )
    assert (
        pages["index"].select_one("article p a[href='guide.html#thm-a']").get_text()
        == "Theorem 1.1"
    )
    (entry,) = pages["api/used_in"].select("article li")
    links = {link.get_text(): str(link["href"]) for link in entry.find_all("a")}
    assert links == {"exposure": "ranks.html#paperlib.bounds.exposure", "A guide": "../guide.html"}
    assert "Keep a Changelog" in pages["changelog"].get_text()
    for name, page in pages.items():
        own = tags(page)
        assert own["citation_title"] == own["og:title"] == page.h1.get_text().removesuffix("#")
        assert (own["citation_author"], own["og:site_name"]) == (
            CFF["authors"][0]["name"],
            CONFIG["title"],
        )
        assert own["citation_publication_date"] == CFF["date-released"].strftime("%Y/%m/%d")
        assert [
            tag for tag, text in own.items() if "url" in tag or "image" in tag or "://" in text
        ] == []
        footer = page.select_one(".extra_footer")
        assert footer.get_text().strip() == f"paperlib {paperlib.__version__}, changes"
        there = "#" if name == "changelog" else ("../" if "/" in name else "") + "changelog.html"
        assert footer.a["href"] == there
    assert tags(pages["index"])["og:description"] == SENTENCE.replace("'", "’")


def test_a_build_writes_what_changed_anew_and_leaves_the_rest(book, built):
    def written():
        return {
            path.stem: path.stat().st_mtime_ns
            for path in (book / "_build" / "html").rglob("*.html")
        }

    def texts():
        script = (book / "_build" / "html" / "_static" / "page_texts.js").read_text(
            encoding="utf-8"
        )
        return json.loads(script[script.index("{") : script.rindex("}") + 1])

    guide = book / "guide.md"
    built()
    before, first = written(), texts()
    built()
    assert (written(), texts()) == (before, first), "nothing changed"
    more = "```python\nfrom paperlib.bounds import audit_ranks\n```\n\nA *new* sentence.\n"
    guide.write_text(
        f"# A guide\n\n{TABLE % 'new'}{PAGES['guide'].partition('# A guide')[2]}{more}"
    )
    pages = built()
    assert numbers(pages["guide"])[:3] == ["Table 1.1", "Table 1.2", "Table 1.3"]
    links = [link.get_text() for link in pages["api/used_in"].select("article li a")]
    assert links == ["audit_ranks", "A guide", "exposure", "A guide"]
    after, second = written(), texts()
    assert "A new sentence." in second["guide"]
    assert {page for page in PAGES if second[page] != first[page]} == {
        "index",
        "guide",
        "api/used_in",
    }
    assert {name for name in ("changelog", "ranks") if after[name] != before[name]} == set()
    guide.write_text(PAGES["guide"], encoding="utf-8")


def test_with_the_two_addresses_each_page_has_its_own(built):
    pages = built("https://example.org/book/", "https://example.org/ask?about={page}&x='\"")
    for name, page in pages.items():
        own = tags(page)
        assert (
            own["citation_public_url"] == own["og:url"] == f"https://example.org/book/{name}.html"
        )
        cover = own["og:image"].removeprefix("https://example.org/")
        assert (ROOT / cover).is_file()
        answer = page.select(".extra_footer a")[1]
        assert answer["href"] == f"https://example.org/ask?about={quote(name, safe='')}&x='\""
    assert numbers(pages["guide"])[:2] == [
        "Table 1.1",
        "Table 1.2",
    ]  # also where nothing was read anew


def test_every_page_stands_in_the_table_of_contents():
    toc = (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")
    listed = re.findall(r"(?:file|root): (?!notebooks/)(\S+)", toc)
    paths = (path.relative_to(ROOT / "book") for path in (ROOT / "book").rglob("*.md"))
    assert sorted(listed) == sorted(
        str(path.with_suffix("")) for path in paths if path.parts[0][0] != "_"
    )


CITE = (ROOT / "book" / "cite.md").read_text(encoding="utf-8")
BIB = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}$", BIB, re.DOTALL | re.MULTILINE))
ADDRESS = re.compile(r"^  (?:url = \{https?://\S+\}|doi = \{10\.\S+\}),$", re.MULTILINE)


def test_the_entry_for_the_book_is_that_of_the_citation_file_and_others_are_in_the_bibliography():
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


@pytest.mark.parametrize(
    "paper", ["panoramia", "epsilon_star", "natural_identifiers", "output_sets"]
)
def test_the_page_of_a_paper_links_it_and_lists_its_notebooks(paper):
    page = (ROOT / "book" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    (cited,) = re.findall(r"^The paper: \{cite:t\}`(\w+)`", page, re.MULTILINE)
    address = re.search(r"url = \{(\S+)\}", ENTRIES[cited])
    assert address is not None
    assert f"]({address[1]})" in page
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    (own,) = [
        one for part in toc["parts"] for one in part["chapters"] if one["file"] == f"papers/{paper}"
    ]
    companions = page.partition("## Companions")[2].partition("\n## ")[0]
    assert [
        one["file"] for one in own["sections"] if f"](../{one['file']})" not in companions
    ] == []
