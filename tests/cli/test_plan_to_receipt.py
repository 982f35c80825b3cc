"""The ten commands of the page *From plan to receipt*, in their order, with the files that it
shows.
"""

import re
import runpy
import shlex
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import BOOK

PAGE = (BOOK / "plan_to_receipt.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```\{code-block\} python\n:caption: (\S+)\n(.*?)```", PAGE, re.DOTALL))
# A backslash at the end of a line goes on with the command on the next one, as in a shell.
COMMANDS = [
    block.replace("\\\n", "") for block in re.findall(r"```sh\n(.*?)\n```", PAGE, re.DOTALL)
]


@pytest.fixture
def shell(here, monkeypatch, command) -> Iterator:
    """Run a line of the page, in this process and in a folder with its files: exit code and
    output.
    """
    monkeypatch.syspath_prepend(str(here))
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")

    def run(line: str) -> tuple[int, str]:
        program, *words = shlex.split(line)
        sys.modules.pop("train", None)
        if program == "paperlib":
            code, out, error = command(*words)
            return code, out + error
        if words[0] == "-c":
            exec(words[1], {})
            return 0, ""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of Opacus: its noise is not that of a secure generator
            names = runpy.run_path(
                words[-1], run_name="__main__" if program == "python" else "tested"
            )
            try:
                for test in (names[name] for name in names if name.startswith("test_")):
                    test()
            except AssertionError as error:
                return 1, str(error)
        return 0, ""

    yield run
    sys.modules.pop("train", None)


def hash_in(text: str) -> str:
    return re.findall(r"published before training: ([0-9a-f]{64})", text)[0]


def test_ten_commands_lead_from_the_plan_to_a_receipt_that_is_verified(shell):
    data, plan, canaries, check, again, seal, train, score, audit, verify = COMMANDS[:10]
    assert shell(data) == (0, "")
    assert "200 examples can show ε up to 4." in shell(plan)[1]
    coins = hash_in(shell(f"{canaries} --seed 0")[1])
    code, said = shell(check)
    assert code == 1
    told = re.search(
        r"`(DP-SGD: not as stated; Poisson sampling: a record is in exactly) ...`", PAGE
    )
    assert told[1] in said
    code_of = Path("train.py").read_text()
    Path("train.py").write_text(re.sub(r".*poisson_sampling=False.*\n", "", code_of))
    assert (check, shell(again)) == (again, (0, ""))
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    Path("plan.yaml").write_text(text.replace("HASH", coins))
    hashes = {"PLAN_HASH": hash_in(shell(seal)[1]), "COINS_HASH": coins}
    assert shell(train) == shell(score) == (0, "")
    code, said = shell(audit)
    assert (code, "gate passed" in said) == (0, True), said
    for name, value in hashes.items():
        verify = verify.replace(name, value)
    code, said = shell(verify)
    assert (code, "as printed" in said, "Warning: not compared" in said) == (0, True, False)
    Path("receipt.html").write_text(
        re.sub(r">ε ≥ \d\.\d", ">ε ≥ 2.0", Path("receipt.html").read_text())
    )
    assert shell(verify)[0] == 2
