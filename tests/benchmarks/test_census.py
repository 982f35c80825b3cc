"""How fast the census reads, parses and scans, in bytes per CPU second, against ripgrep on the same
patterns.

The text is Python source with few identifiers, of any size that is at hand: set PAPERLIB_BENCH_MB.
"""

import gzip
import json
import os
import resource
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from paperlib.data.text.formats import read_pieces
from paperlib.data.text.pieces import Reading, ReadLog
from paperlib.generators.identifiers import PAPER_KINDS
from paperlib.generators.identifiers.kinds import checked_kinds
from paperlib.generators.identifiers.scan import Scanner, StreamScanner
from paperlib.reproduction.papers.natural_identifiers.census.corpus import take_census

BYTES = int(float(os.environ.get("PAPERLIB_BENCH_MB", "4")) * 1e6)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """One file of Python source, and the same as JSON lines, plain and packed."""
    folder, parts, size = tmp_path_factory.mktemp("text"), [], 0
    for path in sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*.py")):
        if path.is_file():
            parts.append(path.read_bytes().decode("utf-8", "replace"))
            size += len(parts[-1])
        if size > BYTES:
            break
    (folder / "source.txt").write_text("\n".join(parts))
    lines = "\n".join(json.dumps({"text": part, "subset": "python"}) for part in parts)
    (folder / "source.jsonl").write_text(lines)
    (folder / "source.jsonl.gz").write_bytes(gzip.compress(lines.encode(), 6))
    return folder


def report(benchmark, path):
    """Megabytes of text per second, in the table of the benchmark."""
    if benchmark.enabled:
        benchmark.extra_info["MB/s"] = round(path.stat().st_size / benchmark.stats.stats.min / 1e6)


@pytest.mark.parametrize("kinds", [PAPER_KINDS, None], ids=["paper's kinds", "all kinds"])
def test_scan(benchmark, source, kinds):
    data = (source / "source.txt").read_bytes()
    benchmark(Scanner(checked_kinds(kinds)).candidates, data)
    report(benchmark, source / "source.txt")


@pytest.mark.parametrize("name", ["source.txt", "source.jsonl", "source.jsonl.gz"])
@pytest.mark.parametrize("whole", [False, True], ids=["read and parse", "census"])
def test_a_file(benchmark, source, tmp_path, whole, name):
    folders = iter(range(10_000))
    benchmark(
        (lambda: take_census([source / name], folder=tmp_path / str(next(folders))))
        if whole
        else lambda: sum(len(p.data) for p in read_pieces(source / name, "s", Reading(), ReadLog()))
    )
    report(benchmark, source / "source.txt")


def cpu(who, work):
    """CPU seconds of some work, and what it returns."""
    before = resource.getrusage(who)
    found = work()
    after = resource.getrusage(who)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, found


@pytest.mark.parametrize("kinds", [PAPER_KINDS, None], ids=["paper's kinds", "all kinds"])
def test_scan_keeps_up_with_ripgrep(benchmark, source, kinds):
    ripgrep = shutil.which("rg")
    if ripgrep is None:
        pytest.skip("ripgrep is not installed")
    path, scanner = source / "source.txt", Scanner(checked_kinds(kinds))
    # rg prints what the scanner returns; both take the file from the disk's cache.
    options = ["--no-unicode", "-j1", "--text", "--only-matching", "--byte-offset", "-e"]
    command = [ripgrep, *options, scanner.pattern, str(path)]

    def printed():
        return subprocess.run(command, capture_output=True, check=True).stdout.count(b"\n")

    def scanned():
        stream = StreamScanner(scanner)
        pieces = read_pieces(path, "python", Reading(), ReadLog())
        return sum(len(stream.feed(piece.data, more=piece.more)) for piece in pieces)

    rounds = 5 if benchmark.enabled else 1
    theirs = [cpu(resource.RUSAGE_CHILDREN, printed) for _ in range(rounds)]
    ours = [cpu(resource.RUSAGE_SELF, scanned) for _ in range(rounds)]
    benchmark(lambda: None)
    # rg does not check what stands on the right, nor which matches overlap.
    assert 0 < ours[0][1] <= 1.2 * theirs[0][1]
    if benchmark.enabled:
        speeds = [path.stat().st_size / min(both)[0] / 1e6 for both in (ours, theirs)]
        benchmark.extra_info.update({"MB/s": round(speeds[0]), "rg MB/s": round(speeds[1])})
        assert speeds[0] >= 0.8 * speeds[1], speeds
