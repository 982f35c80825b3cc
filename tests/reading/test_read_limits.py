"""Sizes before content: what would fill the memory, or wait for ever, is refused in one line."""

import gzip
import io
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paperlib.io import open_records
from paperlib.reading import read_frames, read_scores
from paperlib.reading.limits import READ_LIMIT_VARIABLE, TooLargeError, parse_size, read_limit
from paperlib.reading.sealed import read_sealed
from paperlib.reading.tables import delimited

LIMIT = "4MB"
CELLS = 200_000  # of 64 bytes each


@pytest.fixture(autouse=True)
def small_limit(monkeypatch, tmp_path):
    monkeypatch.setenv(READ_LIMIT_VARIABLE, LIMIT)
    monkeypatch.chdir(tmp_path)


def write_npz():
    np.savez_compressed("a.npz", member=np.zeros(CELLS, bool), score=np.zeros(CELLS))


def write_npy():
    rows = np.zeros(CELLS, dtype=[("member", bool), ("score", "f4")])
    np.save("a.npy", rows)


def write_packed():
    with gzip.open("a.csv.gz", "wb") as file:
        file.write(b"member,score\n" + b"1,0.5\n" * CELLS)


def write_text():
    Path("a.csv").write_bytes(b"member,score\n" + b"1,0.5\n" * CELLS)


def write_json():
    Path("a.jsonl").write_bytes(b'{"member":1,"score":2}\n' * (CELLS // 5))


def write_parquet():
    pq.write_table(
        pa.table({"member": np.zeros(CELLS, bool), "score": np.zeros(CELLS)}), "a.parquet"
    )


def write_safetensors():
    from safetensors.numpy import save_file

    save_file(
        {"member": np.zeros(CELLS, np.uint8), "score": np.zeros(CELLS, np.uint8)}, "a.safetensors"
    )


def write_tensors():
    import torch

    repeated = torch.zeros(1).expand(CELLS)
    torch.save({"member": repeated, "score": repeated}, "a.pt")


WRITERS = {
    function.__name__.removeprefix("write_"): function
    for function in (
        write_npz,
        write_npy,
        write_packed,
        write_text,
        write_json,
        write_parquet,
        write_safetensors,
        write_tensors,
    )
}


def refused(read, *arguments, error=TooLargeError, match="--read-limit"):
    with pytest.raises(error, match=match) as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_more_than_the_limit_is_refused_and_passes_with_a_higher_one(write, monkeypatch):
    write()
    (path,) = Path().iterdir()
    refused(read_scores, str(path))
    monkeypatch.setenv(READ_LIMIT_VARIABLE, "1GB")
    with pytest.raises(ValueError, match="member"):  # one class only: all was read
        read_scores(str(path))


@pytest.mark.parametrize("write", [write_packed, write_text, write_json, write_parquet])
def test_tables_and_records_have_the_same_limit(write):
    write()
    (path,) = Path().iterdir()
    refused(read_frames, [str(path)])
    refused(open_records, str(path))


SMALL_BOMB = """
import sys
from paperlib.reading import read_scores
try:
    read_scores(sys.argv[1])
except ValueError as error:
    print(error)
# The peak that getrusage gives begins with that of the process which started this one.
with open("/proc/self/status") as status:
    (peak,) = [line.split()[1] for line in status if line.startswith("VmHWM")]
print(int(peak) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("members", [4, 1 << 26], ids=["fewer members", "as many"])
def test_a_small_archive_with_a_sea_of_scores_takes_no_memory(members, monkeypatch):
    monkeypatch.delenv(READ_LIMIT_VARIABLE)
    size = 1 << 26
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, dtype, length in (("member", "|b1", members), ("score", "<f8", size)):
            header = io.BytesIO()
            fields = {"descr": dtype, "fortran_order": False, "shape": (length,)}
            np.lib.format.write_array_header_1_0(header, fields)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(header.getvalue())
                left = length * np.dtype(dtype).itemsize
                while left:
                    piece = min(left, 1 << 24)
                    file.write(bytes(piece))
                    left -= piece
    assert Path("bomb.npz").stat().st_size < 3e6
    command = [sys.executable, "-c", SMALL_BOMB, "bomb.npz"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    message, peak = done.stdout.splitlines()
    assert message.startswith("bomb.npz: ")
    assert int(peak) < 300


def header_of(descr, shape):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def test_headers_that_lie_are_refused():
    Path("a.npy").write_bytes(header_of("<f8", (10**15,)) + bytes(80))
    Path("b.npy").write_bytes(header_of("<f8", (10,)) + bytes(80))
    refused(read_scores, "a.npy", "b.npy", error=ValueError, match="claims 8,000,000,000,000,000")
    with zipfile.ZipFile("a.npz", "w") as archive:
        archive.writestr("score.npy", header_of("<f8", (10**15,)) + bytes(80))
        archive.writestr("member.npy", header_of("|b1", (10,)) + bytes(10))
    refused(read_scores, "a.npz", error=ValueError, match="'score'.* claims")
    data = bytearray(Path("a.npz").read_bytes())
    place = data.rindex(b"PK\x01\x02")  # the directory's entry of the last member
    data[place + 24 : place + 28] = struct.pack("<I", 5)  # its size, unpacked
    Path("c.npz").write_bytes(data)
    refused(read_scores, "c.npz", error=ValueError, match=r"c\.npz: ")
    pq.write_table(pa.table({"member": [1, 0], "score": [1.0, 2.0]}), "a.parquet")
    Path("b.parquet").write_bytes(Path("a.parquet").read_bytes()[:-20] + b"PAR1")
    refused(read_scores, "b.parquet", error=ValueError, match="cannot be read")


def test_python_objects_are_never_loaded(tmp_path):
    class Runs:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/ran",)

    np.savez("a.npz", member=np.array([1, 0]), score=np.array([Runs(), Runs()], dtype=object))
    refused(read_scores, "a.npz", error=ValueError, match="Python objects")
    np.save("a.npy", np.array([Runs()], dtype=object))
    refused(read_scores, "a.npy", "a.npz", error=ValueError, match="Python objects")
    assert not Path("ran").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes of this kind")
def test_what_is_no_regular_file_is_refused_at_once():
    os.mkfifo("pipe.csv")
    Path("folder.csv").mkdir()
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket.csv")
    for path, match in {
        "pipe.csv": "named pipe",
        "folder.csv": "this is a folder",
        "socket.csv": "a socket",
        "/dev/zero": "a device",
    }.items():
        refused(read_scores, path, error=ValueError, match=match)
        refused(read_sealed_coins, path, error=ValueError, match=match)
    server.close()


def read_sealed_coins(path):
    read_sealed(path, "paperlib coins", 1, by="coins")


def test_an_open_pipe_and_standard_input_are_read(monkeypatch):
    reader, writer = os.pipe()
    os.write(writer, json.dumps({"format": "other"}).encode())
    os.close(writer)
    refused(read_sealed_coins, f"/dev/fd/{reader}", error=ValueError, match="is no coins file")
    os.close(reader)

    def typed(text):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))

    for name in ("-", "/dev/stdin"):
        typed(b"member,score\n1,2\n0,1\n")
        assert read_scores(name).scores.member.tolist() == [2.0]
    typed(b"member,score\n" + b"1,0.5\n" * CELLS)
    refused(read_scores, "-")


def test_the_limit_is_a_size(monkeypatch):
    assert parse_size("8GiB", "x") == 8 << 30
    for text in ("much", "0", "-1GB", "1e9"):
        monkeypatch.setenv(READ_LIMIT_VARIABLE, text)
        refused(read_limit, error=ValueError, match=READ_LIMIT_VARIABLE)
    monkeypatch.delenv(READ_LIMIT_VARIABLE)
    assert 0 < read_limit() <= 8 << 30


def test_this_process_is_measured_in_kilobytes():
    """The unit that the peak above is read in."""
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 10_000


def seconds_of_columns(columns: int) -> float:
    """Processor time to read a row of so many columns, the least of three."""
    names = ",".join(f"c{number}" for number in range(columns))
    table = delimited(f"{names}\n{'0,' * (columns - 1)}0\n")
    times: list[float] = []
    for _ in range(3):
        begin = time.process_time()
        table.read(table.names)
        times.append(time.process_time() - begin)
    return min(times)


def test_the_time_of_a_table_grows_with_its_columns_not_with_their_square(monkeypatch):
    monkeypatch.setenv(READ_LIMIT_VARIABLE, "1GB")
    assert seconds_of_columns(24_000) < 50 * seconds_of_columns(2_400)
