"""The end of every command: one line for an error, and an exit code.

Nothing is imported here that a plain installation could lack, so that a missing package is one line
as well.
"""

import codecs
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TextIO, cast

INTERNAL_ERROR, USAGE_ERROR, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
DEBUG_VARIABLE = "PAPERLIB_DEBUG"
_LETTERS = {"ε": "eps", "δ": "delta", "≥": ">=", "≤": "<=", "×": "x", "→": "->"}
"""What stands in for a character that the output's encoding lacks; others are given by number."""
_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Reasons why the output cannot be written: no space, a full quota, a file too large, a broken disk
and a closed descriptor."""


def main() -> None:
    """Run the command; an error ends with one line on stderr and an exit code, and with --debug a
    traceback.

    The exit code is 2 for a mistake of the user, 1 for an error of this package or of a notebook, 3
    for a gate that is not passed, 75 for a run that `--minutes` ended, 130 after an interrupt, and
    141 where nobody reads the output any more.
    """
    _read_as_utf8()
    _write_any_character()
    with _visible_streams():
        sys.exit(_exit_code())


def _exit_code() -> int:
    """Run the command; the exit code, after all that it writes."""
    # Whether to show the traceback of an error; the option --debug may set it while the app runs.
    settings: dict[str, Any] = {"debug": os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")}

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    # A request to end, as of a batch system, is a Ctrl-C.
    signal.signal(signal.SIGTERM, interrupt)
    try:
        from paperlib.cli.app import app

        returned = app(standalone_mode=False, obj=settings)
        code = returned if isinstance(returned, int) else 0
        if code == INTERRUPTED:  # Typer turns a Ctrl-C into this exit code without a word
            code = _interrupted()
    except BaseException as error:
        code = _ended(error, settings)
    return _flushed(code, settings)


def _read_as_utf8() -> None:
    """Begin anew with UTF-8 where the locale, such as C in a container, knows ASCII alone: names of
    columns and files are read in UTF-8 everywhere.
    """
    is_ascii = codecs.lookup(sys.getfilesystemencoding()).name == "ascii"
    if is_ascii and os.name == "posix":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _write_any_character() -> None:
    """Let the output say in other letters what its encoding lacks, so that no number is lost."""
    codecs.register_error("paperlib.letters", _in_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="paperlib.letters")


@contextmanager
def _visible_streams() -> Iterator[None]:
    """Show for a while what would steer a terminal as its number, whoever writes it: names of
    files, answers of servers and messages of other packages are text of others.
    """
    from paperlib.core.visible import VisibleStream

    before = sys.stdout, sys.stderr
    if sys.stdout is not None:  # None where the caller closed it
        sys.stdout = cast(TextIO, VisibleStream(sys.stdout))
    if sys.stderr is not None:
        sys.stderr = cast(TextIO, VisibleStream(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _in_letters(error: UnicodeError) -> tuple[str, int]:
    """What stands in for characters that cannot be encoded, and the place where encoding goes on
    after them: a handler of errors as `codecs.register_error` takes it.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    written: list[str] = []
    for character in error.object[error.start : error.end]:
        number = character.encode("ascii", "backslashreplace").decode("ascii")
        written.append(_LETTERS.get(character, number))
    return "".join(written), error.end


def _ended(error: BaseException, settings: dict[str, Any]) -> int:
    """The exit code of a command that an exception ended, after its message is printed, and the
    traceback where ``settings["debug"]`` is set.
    """
    # Typer's own exceptions come from the copy of click it carries, which has no public name.
    name = type(error).__name__
    if isinstance(error, KeyboardInterrupt) or name == "Abort":
        return _interrupted()
    if name == "Exit":
        return int(getattr(error, "exit_code", 0))
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        return _nobody_reads()
    if isinstance(error, SystemExit):  # completion ends so
        return error.code if isinstance(error.code, int) else INTERNAL_ERROR
    if settings["debug"]:
        traceback.print_exception(error)
    message, code = _explained(error)
    return _complain(message, code)


def _explained(error: BaseException) -> tuple[str, int]:
    """What to say of an error, and the exit code: `USAGE_ERROR` for what the user can mend."""
    usage = getattr(error, "format_message", None)
    if usage is not None:
        return _usage_message(error, str(usage())), USAGE_ERROR
    if isinstance(error, ImportError) and not (error.name or "").startswith("paperlib"):
        return _import_message(error), USAGE_ERROR
    if isinstance(error, OSError):
        return _file_message(error), USAGE_ERROR
    if isinstance(error, ValueError):
        return _value_message(error), USAGE_ERROR
    if isinstance(error, MemoryError):
        return "out of memory; give it fewer examples, or a machine with more", INTERNAL_ERROR
    if type(error).__name__ == "NotebookError":
        return str(error), INTERNAL_ERROR
    name = type(error).__name__
    text = _one_line(error)
    cause = f"{name}: {text}" if text else name
    return (
        f"internal error: {cause}; run again with `paperlib --debug ...` and report it",
        INTERNAL_ERROR,
    )


def _one_line(text: object) -> str:
    """A text without line breaks and double spaces."""
    return " ".join(str(text).split())


def _usage_message(error: BaseException, message: str) -> str:
    """A mistake in the command line, in one line.

    Where a command is called without arguments, the message is its help, which keeps its lines.
    """
    if type(error).__name__ == "NoArgsIsHelpError":
        return message
    message = _one_line(message).rstrip(".")
    if message.startswith("No such command") and "Did you mean" not in message:
        message += "; `paperlib --help` lists them"
    return message


def _import_message(error: ImportError) -> str:
    """What to install for a package that is missing, or why one cannot be imported."""
    if error.name is None or not isinstance(error, ModuleNotFoundError):
        return f"a package cannot be imported: {_one_line(error)}"
    from paperlib.cli.install import called_command, missing_package

    return missing_package(error.name, called_command(sys.argv[1:]))


def _file_message(error: OSError) -> str:
    """What is wrong with which file; where it is the output, what it still holds is dropped."""
    if error.strerror is None:  # one of this package, which names the file
        return _one_line(error)
    file = error.filename
    if file is None and error.errno in _OF_OUTPUT:
        file = "the output"
        _discard(sys.stdout)
    reason = f"{error.strerror[:1].lower()}{error.strerror[1:]}"
    return reason if file is None else f"{file}: {reason}"


def _value_message(error: ValueError) -> str:
    """The message in one line, but for a list of what is known, which is indented below it."""
    message = str(error)
    is_list = all(line.startswith("  ") for line in message.splitlines()[1:])
    return message if is_list else _one_line(message)


def _interrupted() -> int:
    """The exit code after an interrupt, after the message."""
    return _complain("interrupted; no half-finished result was kept", INTERRUPTED)


def _complain(message: str, code: int) -> int:
    """Print a message on stderr, as of paperlib unless it is its help; returns the exit code."""
    if not message.startswith("Usage:"):
        message = f"paperlib: {message}"
    from paperlib.core.visible import visible_lines  # here: see above

    try:
        print(visible_lines(message), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)
    return code


def _flushed(code: int, settings: dict[str, Any]) -> int:
    """The exit code after the last of the output is written: ``code`` of the command, or that of an
    error while writing where the command itself had none.
    """
    if sys.stdout is None:  # closed by the caller
        return code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _nobody_reads()
    except OSError as error:
        failed = _ended(error, settings)
        return code or failed
    return code


def _nobody_reads() -> int:
    """The exit code of a closed pipe, without a word, as other commands end."""
    _discard(sys.stdout)
    return BROKEN_PIPE


def _discard(stream: Any) -> None:
    """Send what a stream still holds to nowhere, since Python writes it once more at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
    except (OSError, ValueError):
        return
