"""``paperlib verify --signature`` and ``--time-stamp``: who stands by a page, and since when."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from paperlib.audits import audit_losses, seal_plan
from paperlib.audits.planned import signatures
from paperlib.audits.planned.signatures import NAMESPACE
from paperlib.core import toss_coins
from tests.cli.test_plan_to_receipt import COMMANDS

SIGNED = "verify page.html --signature page.html.sig --signers signers"
STAMPED = "verify page.html --time-stamp page.tsr --authority tsa.pem"
needs_ssh = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
AUTHORITY = """
[req]
distinguished_name = name
prompt = no
x509_extensions = use
[name]
CN = Stamps of a test
[use]
extendedKeyUsage = critical,timeStamping
[stamps]
serial = serial
signer_cert = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3
digests = sha256
ess_cert_id_alg = sha256
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@pytest.fixture(scope="module")
def html() -> str:
    coins = toss_coins(60, seed=0)
    plan = seal_plan({"coins": coins.commitment, "score": "loss", "direction": "lower"})
    losses = np.random.default_rng(1).normal(0, 1, 60) - 3 * coins.included
    return audit_losses(dict(enumerate(losses)), coins=coins, plan=plan).document().html()


@pytest.fixture
def page(here, html) -> Path:
    path = Path("page.html")
    path.write_text(html, encoding="utf-8")
    return path


def make_key(name: str) -> str:
    """A new pair of keys; the public one."""
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name)
    return Path(f"{name}.pub").read_text()


def sign(page: Path, key: str, namespace: str = NAMESPACE) -> None:
    Path(f"{page}.sig").unlink(missing_ok=True)
    run("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", namespace, str(page))


@pytest.fixture
def signed(page) -> Path:
    """A page that Ana signed, and a file that names her key."""
    Path("signers").write_text(f"ana@example.org {make_key('ana')}")
    sign(page, "ana")
    return page


@needs_ssh
def test_the_signer_is_named_before_the_page_is_said_to_be_as_printed(signed, command):
    code, out, error = command.line(SIGNED)
    assert (code, error) == (0, "")
    fingerprint = subprocess.check_output(["ssh-keygen", "-lf", "ana.pub"], text=True).split()[1]
    name = f"Signed by ana@example.org, key {fingerprint}: the page as it is"
    assert 0 < out.index(name) < out.index("as printed")


@needs_ssh
def test_the_commands_of_the_page_sign_a_report_and_verify_it(page, command):
    """The last two of "From plan to receipt"."""
    Path("signers").write_text(f"ana@example.org {make_key('ana')}")
    page.rename("receipt.html")
    making, verifying = COMMANDS[10:]
    assert making.count("~/.ssh/id_ed25519") == 1
    run(*making.replace("~/.ssh/id_ed25519", "ana").split())
    code, out, _ = command.line(verifying.removeprefix("paperlib "))
    assert (code, "Signed by ana@example.org" in out) == (0, True)


@needs_ssh
def test_an_altered_page_is_refused_signed_or_not(signed, command):
    """A signature replaces no computation: one of an altered page says so and no more."""
    whole = signed.read_text()
    number = re.findall(r"ε ≥ (\d\.\d+)", whole)[0]
    signed.write_text(whole.replace(f"ε ≥ {number}", "ε ≥ 0.002"))
    command.refuses(SIGNED, "page.html.sig: is no signature of page.html for 'paperlib-report' by")
    sign(signed, "ana")
    code, out, error = command.line(SIGNED)
    assert (code, out) == (2, "")
    assert "is not the report of the planned audit:" in error


@needs_ssh
def test_a_signature_is_of_bytes_not_of_what_a_browser_shows(signed, command):
    """Other ends of lines leave the report what it is, but are not what was signed."""
    signed.write_bytes(signed.read_bytes().replace(b"\n", b"\r\n"))
    assert command("verify", "page.html")[0] == 0
    command.refuses(SIGNED, "`ssh-keygen` says: .*incorrect signature")


@needs_ssh
def test_another_signer_another_use_and_files_of_another_kind_are_one_line(signed, command):
    make_key("eve")
    sign(signed, "eve")
    command.refuses(SIGNED, "by a key that signers lists; `ssh-keygen` says: No principal matched")
    sign(signed, "ana", namespace="file")
    command.refuses(SIGNED, "says: .*namespace does not match")
    sign(signed, "ana")
    ana = Path("ana.pub").read_text()
    Path("signers").write_text(f'ana@example.org namespaces="git" {ana}')
    assert command.line(SIGNED)[0] == 2
    Path("signers").write_text(f'ana@example.org valid-before="20200101" {ana}')
    assert command.line(SIGNED)[0] == 2
    Path("signers").write_text("\x1b[2J none\n")
    command.refuses(SIGNED, "is no signature")
    for text in (b"", b"\xff\x00", b"-----BEGIN SSH SIGNATURE-----\n"):
        Path("page.html.sig").write_bytes(text)
        command.refuses(SIGNED, "page.html.sig: is no signature of page.html")


def test_the_plan_of_a_stranger_steers_no_terminal(here, command):
    """Notes that would clear the screen, write a number and hide what follows."""
    coins = toss_coins(60, seed=0)
    notes = "\x1b[2J\x1b[1;1Hepsilon = 0.001, gate passed\x1b[8m"
    fields = {"coins": coins.commitment, "score": "loss", "direction": "lower", "notes": notes}
    losses = np.random.default_rng(1).normal(0, 1, 60) - 3 * coins.included
    audits = audit_losses(dict(enumerate(losses)), coins=coins, plan=seal_plan(fields))
    audits.document().write(Path("page.html"))
    code, out, error = command("verify", "page.html")
    assert (code, "\x1b" in out + error) == (0, False)
    assert "notes: \\x1b[2J\\x1b[1;1Hepsilon = 0.001, gate passed\\x1b[8m" in out


def test_what_is_missing_is_said_in_one_line(page, command, monkeypatch):
    for name in ("page.html.sig", "signers", "page.tsr", "tsa.pem"):
        Path(name).write_text("")
    command.refuses("verify page.html --signature page.html.sig", "--signers, a file of lines")
    command.refuses("verify page.html --signers signers", "--signers: give the signature")
    command.refuses("verify page.html --time-stamp page.tsr", "certificates with --authority")
    command.refuses("verify page.html --authority tsa.pem", "--authority: give the time stamp")
    command.refuses(SIGNED.replace("page.html.sig", "none.sig"), "none.sig: no such file")
    monkeypatch.setattr(signatures.shutil, "which", lambda _: None)
    command.refuses(SIGNED, "`ssh-keygen`, which is not on this computer; install OpenSSH 8.1")
    command.refuses(STAMPED, "`openssl`, which is not on this computer; install OpenSSL")


@needs_openssl
def test_a_time_stamp_is_shown_where_the_authority_gave_it_to_this_page(page, command):
    Path("serial").write_text("01\n")
    Path("tsa.cnf").write_text(AUTHORITY)
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    made = ("-config", "tsa.cnf", "-days", "36500")
    run("openssl", "req", "-x509", *curve, "-keyout", "tsa.key", "-out", "tsa.pem", *made)
    run("openssl", "req", "-x509", *curve, "-keyout", "eve.key", "-out", "eve.pem", *made)
    ask = ("openssl", "ts", "-query", "-data", "page.html", "-sha256", "-cert", "-out", "page.tsq")
    run(*ask)
    reply = ("openssl", "ts", "-reply", "-queryfile", "page.tsq", "-section", "stamps")
    run(*reply, "-config", "tsa.cnf", "-out", "page.tsr")

    code, out, error = command.line(STAMPED)
    assert (code, error) == (0, "")
    (time,) = re.findall("Time stamp: the page as it is was there on (.+ GMT), by the", out)
    assert 0 < out.index(time) < out.index("as printed")
    command.refuses(STAMPED.replace("tsa.pem", "eve.pem"), "is no time stamp of page.html by eve")
    Path("page.tsr").write_bytes(Path("page.tsr").read_bytes()[:-40])
    command.refuses(STAMPED, "page.tsr: is no time stamp of page.html")
    run(*reply, "-config", "tsa.cnf", "-out", "page.tsr")
    page.write_text(page.read_text() + " ")
    command.refuses(STAMPED, "`openssl` says: message imprint mismatch")
