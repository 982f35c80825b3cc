"""Text of others reaches the terminal through one door, whoever prints it."""

import ast
import json
import logging
import sys
import unicodedata
from collections.abc import Callable
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import typer
from tqdm import tqdm

from paperlib.cli import doctor as doctor_module
from paperlib.cli import guard
from paperlib.generators.identifiers import generate_identifiers
from paperlib.io import progress as io_progress
from paperlib.report.bars import progress
from tests.reproduction.running.toys import make_project

HOSTILE = "\x1b[2J\x1b[1;1Hgate passed\u202e\x9b8m\r\x1b]0;title\x07\u2028"
"""Clears the screen, writes over it, turns the direction of what follows, and names the window."""
PACKAGE = Path(guard.__file__).parents[1]
NAMED = "\\x1b[2J"


def steers(text: str) -> list[str]:
    """What a terminal acts on, but for ends of lines."""
    return [letter for letter in text if letter != "\n" and unicodedata.category(letter)[0] == "C"]


def raised() -> None:
    raise RuntimeError(HOSTILE)


def logged() -> None:
    """A message of another package, which writes it to standard error."""
    logger = logging.getLogger("of.others")
    handler = logging.StreamHandler()
    logger.addHandler(handler)
    logger.warning("said %s", HOSTILE)
    logger.removeHandler(handler)


WRITERS: dict[str, Callable[[], object]] = {
    "print": lambda: print(HOSTILE),
    "print in pieces": lambda: print("the file", HOSTILE, HOSTILE, sep="\r", end="\r"),
    "output": lambda: sys.stdout.write(HOSTILE),
    "output, lines": lambda: sys.stdout.writelines(["a", HOSTILE]),
    "errors": lambda: print(HOSTILE, file=sys.stderr),
    "a return after words": lambda: (sys.stderr.write("exit"), sys.stderr.write("\rpassed")),
    "typer": lambda: typer.echo(HOSTILE, err=True),
    "a log": logged,
    "an error": raised,
}


@pytest.mark.parametrize("has_door", [True, False])
@pytest.mark.parametrize("writer", WRITERS)
def test_whatever_a_command_writes_passes_the_door(command, here, monkeypatch, writer, has_door):
    """Each way to write, and the same ones where the door is left out: there all get through."""
    monkeypatch.setattr(doctor_module, "doctor", WRITERS[writer])
    if not has_door:
        monkeypatch.setattr(guard, "_visible_streams", nullcontext)
    _, out, error = command("--debug", "doctor")  # with the traceback
    assert bool(steers(out + error)) is not has_door, out + error


def test_a_bar_of_another_package_returns_to_the_start_of_its_line_and_steers_no_more(
    command, here, monkeypatch
):
    def doctor() -> None:
        bar = tqdm(desc=HOSTILE, total=2, file=sys.stderr, mininterval=0)
        bar.update()
        bar.close()
        print("the end", file=sys.stderr)

    monkeypatch.setattr(doctor_module, "doctor", doctor)
    _, _, error = command("doctor")
    bars, end = error.split("\n", 1)
    assert (end, steers(bars.replace("\r", ""))) == ("the end\n", [])
    assert bars.startswith(f"\r{NAMED}"), "a bar is drawn over itself"


def test_bars_of_our_own_show_their_labels_in_visible_letters(command, here, monkeypatch):
    """A label may name a file; the bar itself still steers, which is what it is for."""

    def doctor() -> None:
        with io_progress.progress_bar(2, label=HOSTILE) as outer:
            outer.update()
            list(progress([1, 2], label=HOSTILE))

    monkeypatch.setattr(doctor_module, "doctor", doctor)
    monkeypatch.setenv("PAPERLIB_PROGRESS", "1")
    code, out, error = command("doctor")
    assert (code, out, NAMED in error) == (0, "", True)
    assert "\x1b[2J" not in error
    assert not set("\u202e\x9b\x07").intersection(error)


FAILS = f"""import sys
print({HOSTILE!r})
sys.stderr.write({HOSTILE!r})
sys.stderr.flush()
raise KeyError({HOSTILE!r})"""
MISTAKEN = f"raise ValueError({HOSTILE!r})"


@pytest.mark.parametrize("words", ["run fails", "--debug run fails", "run mistaken"])
def test_errors_and_logs_of_notebooks_steer_no_terminal(command, tmp_path, monkeypatch, words):
    """Messages, tracebacks, what a cell wrote, and the log that is kept."""
    make_project(tmp_path, fails=FAILS, mistaken=MISTAKEN)
    monkeypatch.chdir(tmp_path)
    code, out, error = command.line(words)
    assert (code, out) == (1, "")
    assert steers(error) == []
    assert "\\x1b" in error
    (log,) = (tmp_path / "runs" / "failed").iterdir()
    assert steers(log.read_text(encoding="utf-8")) == []


CALLS = {
    ("list",): 0,
    ("doctor",): 0,
    ("run", HOSTILE): 2,
    ("run", "toy", "-p", f"{HOSTILE}=1"): 2,
    ("run", "toy", "-p", f"m={HOSTILE}"): 2,
    ("run", "toy", "--profile", HOSTILE): 2,
    ("sweep", "toy", "-p", f"file={HOSTILE}", "--workers", "0", "--dry-run"): 0,
    ("sweep", "toy", "-p", "m=1,2", "--workers", "0", "--dry-run"): 0,
    ("sweep", "toy", "-p", f"m={HOSTILE}", "--workers", "0"): 2,
}
"""Words of a command to its exit code."""


def test_names_of_notebooks_parameters_and_folders_steer_no_terminal(
    command, tmp_path, monkeypatch
):
    """`list`, `run`, `sweep` and `doctor`, in a folder whose name is somebody else's."""
    folder = tmp_path / "a\x1b[2J\u202eb"
    project = make_project(folder, toy="print(m)")
    notebook = project.notebooks / "toy.ipynb"
    text = notebook.read_text(encoding="utf-8")
    notebook.write_text(text.replace("# A toy", "# A\\u001b[2J\\u202e toy"), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PAPERLIB_DATA", str(folder))
    for words, expected in CALLS.items():
        code, out, error = command(*words)
        assert (code, steers(out + error)) == (expected, []), words


class Refusing(BaseHTTPRequestHandler):
    """A chat server that refuses each request in words of its own."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = HOSTILE.encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_the_refusal_of_a_chat_server_steers_no_terminal(command, here):
    sums = generate_identifiers("83a5ef2c9d0b3e71f6a8c3d25b190e47", 20, 0)
    texts = [json.dumps({"text": f"The sum of the part is {value}."}) for value in sums]
    Path("docs.jsonl").write_text("\n".join(texts))
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        code, out, error = command("audit-chat", address, "docs.jsonl", "--model", "m", "--yes")
        server.shutdown()
    assert (code, out) == (2, "")
    assert steers(error.replace("\r", "")) == [], "a bar of questions stands before it"
    assert f"status 400) {NAMED}" in error


BARS = {"report/bars.py", "io/progress.py"}


def dotted(node: ast.expr) -> str:
    """A name with its dots, such as "sys.stdout.buffer"; empty for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def ways_round(source: str) -> set[str]:
    """Names and calls by which a module would write to the terminal beside the door."""
    ways: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            ways |= ways_of_call(node)
        elif isinstance(node, ast.Attribute | ast.Name) and is_way(dotted(node)):
            ways.add(dotted(node))
    return ways


def is_way(name: str) -> bool:
    """Whether a name is that of a stream that the door does not stand before."""
    names = ("sys.__stdout__", "sys.__stderr__", "os.write", "stream_below")
    return name in names or name.endswith((".stdout.buffer", ".stderr.buffer"))


def ways_of_call(call: ast.Call) -> set[str]:
    """A call that opens the terminal, draws a bar, or starts a process that writes there."""
    name = dotted(call.func)
    if name in ("tqdm", "os.system"):
        return {name}
    if name in ("open", "os.fdopen") and call.args:
        opened = ast.unparse(call.args[0])
        return {f"{name}({opened})"} if opened in ("1", "2", "'/dev/tty'") else set()
    if name in ("subprocess.run", "subprocess.Popen", "subprocess.check_call", "subprocess.call"):
        keywords = {keyword.arg for keyword in call.keywords}
        is_caught = "capture_output" in keywords or {"stdout", "stderr"} <= keywords
        return set() if is_caught or None in keywords else {name}
    return set()


def test_no_module_writes_to_the_terminal_beside_the_door():
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name == "core/visible.py":  # the door itself
            continue
        ways = ways_round(path.read_text(encoding="utf-8"))
        if name in BARS:
            ways -= {"tqdm", "stream_below"}
        if ways:
            found[name] = ways
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "sys.__stderr__.write(text)",
        "print(text, file=sys.__stdout__)",
        "os.write(2, data)",
        "sys.stdout.buffer.write(data)",
        "open(2, 'w').write(text)",
        "open('/dev/tty', 'w').write(text)",
        "subprocess.run(['git'])",
        "subprocess.Popen(['git'], stdout=file)",
        "os.system('git')",
        "for row in tqdm(rows): pass",
        "stream_below(sys.stderr).write(text)",
    ],
)
def test_each_way_beside_the_door_is_seen(source):
    assert ways_round(source)


def test_the_door_leaves_results_and_streams_as_they_are(command, here):
    """Numbers and letters of any script stay; what was there before the command is there again."""
    before = sys.stdout, sys.stderr
    code, out, _ = command("plan", "--m", "100", "--epsilon", "1")
    assert (code, out) == (2, "")
    code, out, _ = command("plan", "--m", "1000", "--simulations", "20")
    assert code == 0
    assert "ε" in out
    assert (sys.stdout, sys.stderr) == before
