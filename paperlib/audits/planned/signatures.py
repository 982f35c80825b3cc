"""Who signed a report, and since when it is there: as `ssh-keygen` and `openssl` check it."""

import re
import shutil
import subprocess
from os import PathLike, fspath
from pathlib import Path

from paperlib.core.visible import visible_text
from paperlib.reading.files import read_file, regular_file

NAMESPACE = "paperlib-report"
"""What a signature is made for: one of an e-mail, by the same key, is none of a report."""
_SECONDS = 60
_TO_INSTALL = {
    "ssh-keygen": "a signature is checked by `ssh-keygen`, which is not on this computer; install "
    "OpenSSH 8.1 or newer (Debian: apt install openssh-client; Windows: the optional feature "
    "OpenSSH Client), or leave --signature out",
    "openssl": "a time stamp is checked by `openssl`, which is not on this computer; install "
    "OpenSSL (Debian: apt install openssl), or leave --time-stamp out",
}


def signed_by(
    report: "str | PathLike[str]",
    *,
    signature: "str | PathLike[str]",
    signers: "str | PathLike[str]",
) -> str:
    """The signer of a report, by a signature in a file of its own.

    Guarantee:
        A key that ``signers`` lists for this name, and for today, signed all bytes of ``report``
        for the namespace "paperlib-report". Nothing follows for the numbers of the report.

    Args:
        report: The signed file.
        signature: What ``ssh-keygen -Y sign -n paperlib-report -f KEY REPORT`` wrote.
        signers: The keys that the caller trusts, a line each: a name and a public key, as
            "ALLOWED SIGNERS" of ``man ssh-keygen`` describes it.

    Returns:
        The name in ``signers`` and the key's fingerprint, in visible letters.

    Raises:
        ValueError: No such signature, or no `ssh-keygen`; one line.
        OSError: A file is not there.
    """
    page = read_file(fspath(report))
    files = ["-s", _whole_path(signature), "-f", _whole_path(signers)]
    refusal = (
        f"{signature}: is no signature of {report} for {NAMESPACE!r} by a key that {signers} "
        "lists; `ssh-keygen` says"
    )
    names = _output(["ssh-keygen", "-Y", "find-principals", *files], refusal)
    name = names.splitlines()[0] if names else ""
    verify = ["ssh-keygen", "-Y", "verify", *files, "-I", name, "-n", NAMESPACE]
    fingerprint = re.search(r"\w+:[\w+/=]+$", _output(verify, refusal, page).strip())
    key = "" if fingerprint is None else f", key {fingerprint[0]}"
    return visible_text(f"{name}{key}")


def stamped_at(
    report: "str | PathLike[str]",
    *,
    time_stamp: "str | PathLike[str]",
    authority: "str | PathLike[str]",
) -> str:
    """The time by which a report was there, by a time stamp (RFC 3161) in a file of its own.

    Guarantee:
        Whoever holds a key of ``authority`` stated at that time the hash of all bytes of
        ``report``. The report is at least as old as that, by the clock of the authority.

    Args:
        report: The stamped file.
        time_stamp: The authority's answer, DER.
        authority: The certificates that the caller trusts, PEM.

    Returns:
        The time as `openssl` prints it, in visible letters.

    Raises:
        ValueError: No such time stamp, or no `openssl`; one line.
        OSError: A file is not there.
    """
    stamp = _whole_path(time_stamp)
    refusal = f"{time_stamp}: is no time stamp of {report} by {authority}; `openssl` says"
    files = ["-in", stamp, "-data", _whole_path(report), "-CAfile", _whole_path(authority)]
    _output(["openssl", "ts", "-verify", *files], refusal)
    shown = _output(["openssl", "ts", "-reply", "-in", stamp, "-text"], refusal)
    times = re.findall(r"^Time stamp: (.+)$", shown, re.MULTILINE)
    if len(times) != 1:
        raise ValueError(f"{time_stamp}: holds {len(times)} times; give an authority's answer")
    return visible_text(times[0])


def _whole_path(path: "str | PathLike[str]") -> str:
    """The path of a regular file from the root, which no program takes for an option."""
    return str(regular_file(Path(path)).absolute())


def _output(command: list[str], refusal: str, page: bytes = b"") -> str:
    """What a program prints that is given ``page`` as its input; a ValueError where it is not
    installed, takes more than 60 seconds or fails, then with ``refusal`` and the program's reason.
    """
    program = shutil.which(command[0])
    if program is None:
        raise ValueError(_TO_INSTALL[command[0]])
    try:
        done = subprocess.run(
            [program, *command[1:]], input=page, capture_output=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{refusal} nothing within {_SECONDS} s") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise ValueError(f"{refusal}: {visible_text(_reason(lines), 300)}")
    return done.stdout.decode(errors="replace")


def _reason(lines: list[str]) -> str:
    """The first line in which a program says why; of OpenSSL without number and place."""
    errors = [line for line in lines if ":error:" in line]
    if not errors:
        return lines[0]
    fields = errors[0].split(":")
    return fields[5] if len(fields) > 5 else errors[0]
