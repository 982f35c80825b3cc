"""Check built HTML: nothing loaded from the network, every link leads somewhere, every image is
described.

Usage: python .ci/check_book.py book/_build/html
"""

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

LOADS = {  # tag -> attributes whose address the browser fetches by itself
    "audio": ["src"],
    "embed": ["src"],
    "iframe": ["src"],
    "img": ["src", "srcset"],
    "link": ["href"],
    "object": ["data"],
    "script": ["src"],
    "source": ["src", "srcset"],
    "track": ["src"],
    "video": ["src", "poster"],
}
EXTERNAL = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
CSS_LOAD = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
LONG_TYPE = re.compile(r"_SupportsArray|_NestedSequence|_Buffer")
MINUS_ZERO = re.compile(r"(?<![\w.)/−-])[−-]0(?:\.0+)?(?![\w.])")
MACHINE_PATH = re.compile(r"(?:file:///|/home/|/Users/|/root/|/tmp/|[A-Z]:\\Users\\)[^\s<>\"'&]*")
Problem = tuple[Path, str]


def check(root: Path) -> list[Problem]:
    """Every problem below ``root``, as (file, sentence); empty when the book is in order."""
    pages = sorted(root.rglob("*.html"))
    if not pages:
        return [(root, "holds no HTML page")]
    problems = [(page, text) for page in pages for text in check_page(page, root)]
    problems += [
        (sheet, f"loads {address} from the network")
        for sheet in sorted(root.rglob("*.css"))
        for address in CSS_LOAD.findall(sheet.read_text(encoding="utf-8"))
    ]
    written = [*pages, *root.rglob("searchindex.js"), *(root / "_sources").rglob("*.*")]
    return problems + [(page, text) for page in written for text in machine_paths(page)]


def check_page(page: Path, root: Path) -> Iterator[str]:
    """The problems of one page: external loads, broken links, images without words, types no reader
    knows.
    """
    soup = parse(page)
    yield from external_loads(soup)
    # The PDF's link is hidden until it is printed.
    for link in soup.find_all("a", href=True, hidden=False):
        yield from broken_link(str(link["href"]), page, root)
    for image in soup.find_all("img"):
        if not str(image.get("alt", "")).strip():
            yield f"image without alt text: {str(image.get('src'))[:60]}"
    long_type = LONG_TYPE.search(soup.get_text())
    if long_type:
        yield (
            f"spells out a type of numpy's ({long_type[0]}); book/_ext/short_types.py has its "
            "short name"
        )
    for text in soup.find_all(string=MINUS_ZERO):
        if not text.find_parent(["pre", "code", "script", "style"]):
            yield f"shows zero with a minus: {' '.join(text.split())[:80]}"


def external_loads(soup: BeautifulSoup) -> Iterator[str]:
    """Addresses on the network that a browser would fetch without being asked."""
    for name, attributes in LOADS.items():
        for tag in soup.find_all(name):
            if name != "link" or loads_on_sight(tag):
                yield from external_attributes(tag, attributes)
    for style in styles(soup):
        for address in CSS_LOAD.findall(style):
            yield f"a style loads {address} from the network"


def external_attributes(tag: Tag, attributes: list[str]) -> Iterator[str]:
    """The attributes of a tag that name an address on the network."""
    for attribute in attributes:
        if EXTERNAL.match(str(tag.get(attribute, ""))):
            yield f"<{tag.name}> loads {tag[attribute]} from the network"


def loads_on_sight(link: Tag) -> bool:
    """Whether a browser fetches what this <link> names (it does not follow rel=canonical, next,
    author…).
    """
    fetched = {
        "stylesheet",
        "icon",
        "preload",
        "prefetch",
        "modulepreload",
        "manifest",
        "preconnect",
    }
    return bool(fetched & {word.lower() for word in link.get_attribute_list("rel") if word})


def styles(soup: BeautifulSoup) -> Iterator[str]:
    """The style elements of a page, then its style attributes."""
    for tag in soup.find_all("style"):
        yield tag.get_text()
    for tag in soup.find_all(style=True):
        yield str(tag["style"])


def broken_link(href: str, page: Path, root: Path) -> Iterator[str]:
    """Why an internal link leads nowhere; nothing for links that work or leave the book."""
    parts = urlsplit(href)
    if parts.scheme or parts.netloc:
        return
    path = unquote(parts.path)
    base = root if path.startswith("/") else page.parent
    target = (base / path.lstrip("/")).resolve() if path else page
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        yield f"link to a missing file: {href}"
        return
    fragment = unquote(parts.fragment)
    if fragment and target.suffix == ".html" and fragment not in anchors(target):
        yield f"link to a missing anchor: {href}"


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """Every name on a page that a link can point at."""
    soup = parse(page)
    ids = {str(tag["id"]) for tag in soup.find_all(id=True)}
    names = {str(tag["name"]) for tag in soup.find_all("a", attrs={"name": True})}
    return frozenset(ids | names | {"top"})


@functools.cache
def parse(page: Path) -> BeautifulSoup:
    """The parsed page; each is read once."""
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def machine_paths(page: Path) -> Iterator[str]:
    """Folders of the machine that built the book."""
    text = page.read_text(encoding="utf-8", errors="replace")
    paths = set(MACHINE_PATH.findall(text))
    for folder in (str(Path.cwd()), sys.prefix):
        if len(folder) > 4 and folder in text:
            paths.add(folder)
    for path in sorted(paths):
        yield f"names a path of the building machine: {path[:80]}"


def main(argv: list[str]) -> int:
    """Print each problem and return the exit status."""
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(argv[0]).resolve()
    problems = check(root)
    for page, text in problems:
        print(f"{page.relative_to(root)}: {text}")
    pages = len(list(root.rglob("*.html")))
    print(f"{len(problems)} problems on {pages} pages")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
