"""What a release rests on: one line for each change, dated sections, workflows whose commands
exist, and versions that the pages state.
"""

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import paperlib
from paperlib.audits.planned import sealed_plan
from paperlib.core import coins, results

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
TOWNCRIER = tomllib.loads((ROOT / "towncrier.toml").read_text(encoding="utf-8"))["tool"][
    "towncrier"
]
KINDS = {kind["directory"] for kind in TOWNCRIER["type"]}
MOST_CHARACTERS = 200
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
STABILITY = (ROOT / "book" / "stability.md").read_text(encoding="utf-8")
WORKFLOWS = {
    path.name: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


def faults_of_fragment(name: str, text: str) -> list[str]:
    """What is wrong with a file of ``changes/``."""
    faults: list[str] = []
    kinds = "|".join(sorted(KINDS))
    if re.fullmatch(rf"[a-z0-9-]+\.({kinds})\.md", name) is None:
        faults.append("name")
    if len(text.strip().splitlines()) != 1:
        faults.append("lines")
    if len(text.strip()) > MOST_CHARACTERS:
        faults.append("length")
    return faults


def test_each_change_is_one_line_under_a_name_that_says_its_kind():
    for path in (ROOT / "changes").iterdir():
        if path.name not in TOWNCRIER["ignore"]:
            text = path.read_text(encoding="utf-8")
            assert faults_of_fragment(path.name, text) == [], path.name
    assert faults_of_fragment("a-name.fixed.md", "A sentence.\n") == []
    assert faults_of_fragment("a-name.feature.md", "One.\nTwo.\n") == ["name", "lines"]
    assert faults_of_fragment("Name.md", "x" * 201) == ["name", "length"]
    rule = (ROOT / "changes" / "README.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"`{kind}`" not in rule] == []
    assert f"at most {MOST_CHARACTERS} characters" in rule


def test_the_changelog_has_dated_sections_newest_first_with_one_line_each():
    titles = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    dates = [re.fullmatch(r"\S+ of (\d{4}-\d\d-\d\d)", title) for title in titles]
    assert None not in dates
    days = [date[1] for date in dates if date]
    assert days == sorted(days, reverse=True)
    head, body = CHANGELOG.split(TOWNCRIER["start_string"])
    assert "Keep a Changelog" in head
    known = {kind["name"] for kind in TOWNCRIER["type"]}
    assert set(re.findall(r"^### (.*)$", body, re.MULTILINE)) <= known
    assert [line for line in body.splitlines() if re.match(r"(?!- |##|$)", line)] == []


def test_the_lines_of_changes_become_a_section_that_keeps_the_others(tmp_path):
    (tmp_path / "changes").mkdir()
    for name in ("towncrier.toml", "CHANGELOG.md", "changes/template.md.j2", "changes/README.md"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "changes" / "a.numbers.md").write_text("One line.\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
    words = ["build", "--yes", "--version", "9.0.0", "--date", "2099-01-02"]
    build = [sys.executable, "-m", "towncrier", *words]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    section = "## 9.0.0 of 2099-01-02\n\n### Numbers that moved\n\n- One line.\n\n"
    assert written.replace(section, "") == CHANGELOG
    assert section in written
    left = {path.name for path in (tmp_path / "changes").iterdir()}
    assert left == set(TOWNCRIER["ignore"])


def test_the_page_of_what_is_stable_is_short_and_states_the_versions_of_files():
    assert len(STABILITY.split()) < 600
    rows = re.findall(r"^\| ([a-z ]+?)(?: as JSON)? \|.*\| (\d) \|$", STABILITY, re.MULTILINE)
    stated = {name: int(version) for name, version in rows}
    assert stated == {
        "result": results.RESULT_SCHEMA_VERSION,
        "coins": coins._VERSION,
        "sealed plan": sealed_plan._VERSION,
    }
    assert PROJECT["name"] in STABILITY


def test_every_version_of_python_that_is_named_is_one_that_the_package_takes():
    matrices = [job["strategy"]["matrix"] for job in WORKFLOWS["tests.yml"]["jobs"].values()]
    first, last = re.findall(r"Python (3\.\d+) to Python (3\.\d+)", STABILITY)[0]
    for matrix in matrices:
        assert (matrix["python"][0], matrix["python"][-1]) == (first, last)
        takes = SpecifierSet(PROJECT["requires-python"])
        assert all(takes.contains(version) for version in matrix["python"])
        assert {system.partition("-")[0] for system in matrix["system"]} == {
            "ubuntu",
            "macos",
            "windows",
        }


def steps(workflow: dict) -> list[dict]:
    """The steps of all jobs."""
    found: list[dict] = []
    for job in workflow["jobs"].values():
        found += job.get("steps", [])
    return found


def faults_of_command(words: list[str]) -> list[str]:
    """Words of a command that name what this checkout does not have."""
    if words[:3] == ["python", "-m", "pytest"]:
        return [word for word in words[3:] if not (ROOT / word).exists()]
    if words[:4] == ["python", "-m", "pip", "install"]:
        return faults_of_install(words[4:])
    if words[0] == "python":
        return [] if (ROOT / words[1]).is_file() else [words[1]]
    if words[0] == "make":
        return [word for word in words[1:] if "=" not in word and word not in TARGETS | {"&&"}]
    return [] if words[0] in ("sed", "test") else words[:1]


def faults_of_install(words: list[str]) -> list[str]:
    """What pip is asked for that pyproject.toml does not name."""
    packages = {Requirement(line).name for lines in EXTRAS.values() for line in lines}
    faults: list[str] = []
    if "--require-hashes" in words:
        return faults
    for word in words:
        if word.startswith("."):
            asked = filter(None, word.removeprefix(".").strip("[]").split(","))
            faults += [extra for extra in asked if extra not in EXTRAS]
        elif word != "-e" and word not in packages:
            faults.append(word)
    return faults


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_commands_of_a_workflow_exist(name):
    commands = [step["run"] for step in steps(WORKFLOWS[name]) if "run" in step]
    for line in filter(None, "\n".join(commands).splitlines()):
        assert faults_of_command(shlex.split(line)) == [], line


def test_a_command_that_does_not_exist_is_seen():
    assert faults_of_command(["make", "boook", "PROFILE=smoke"]) == ["boook"]
    assert faults_of_command(["python", "-m", "pytest", "tests/nothing"]) == ["tests/nothing"]
    assert faults_of_command(["python", ".ci/nothing.py"]) == [".ci/nothing.py"]
    install = ["python", "-m", "pip", "install"]
    assert faults_of_command([*install, ".[trains,run]", "pytest", "left-pad"]) == [
        "trains",
        "left-pad",
    ]
    assert faults_of_command(["npm", "install"]) == ["npm"]


PINNED = re.compile(r"[\w-]+/[\w-]+@(release/)?v\d+")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_pins_its_actions_and_names_no_address_account_or_key(name):
    workflow = WORKFLOWS[name]
    called = [job["uses"] for job in workflow["jobs"].values() if "uses" in job]
    assert [path for path in called if not (ROOT / path).is_file()] == []
    actions = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert [action for action in actions if PINNED.fullmatch(action) is None] == []
    text = (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    assert re.findall(r"://|secrets\.|password|(?<!id-)token:|api[-_]key", text) == []
    assert workflow["permissions"] == {"contents": "read"}


def test_only_the_job_that_publishes_may_ask_for_an_identity():
    jobs = {**WORKFLOWS["publish.yml"]["jobs"]}
    publish = jobs.pop("publish")
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]
    assert [name for name, job in jobs.items() if "permissions" in job] == []


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """The script of a release, which is in no package."""
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel_of(path: Path, names: Iterable[str]) -> Path:
    """A wheel with empty files of these names."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_a_wheel_holds_the_tool_and_nothing_else(tmp_path, release):
    command = ["git", "-C", str(ROOT), "ls-files", "paperlib"]
    committed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    for name in committed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    tool = [name for name in committed if not name.startswith("paperlib/reproduction/")]
    about = ["leakbound-1.dist-info/METADATA", "leakbound-1.dist-info/licenses/LICENSE"]
    sound = wheel_of(tmp_path / "sound.whl", tool + about)
    release.check_contents(sound, tmp_path)
    for stray in (
        "tests/test_a.py",
        "paperlib/reproduction/__init__.py",
        "paperlib/core/scores.npz",
        "data/adult.csv",
        "leakbound-1.dist-info/notes.txt",
    ):
        wheel = wheel_of(tmp_path / "stray.whl", [*tool, *about, stray])
        with pytest.raises(release.ReleaseError, match=f"1 faults, such as {stray}: not of the"):
            release.check_contents(wheel, tmp_path)
    lacking = wheel_of(tmp_path / "lacking.whl", tool[1:] + about)
    with pytest.raises(release.ReleaseError, match=f"{tool[0]}: missing"):
        release.check_contents(lacking, tmp_path)
    (tmp_path / "paperlib/core/scores.npz").touch()
    wheel = wheel_of(tmp_path / "kind.whl", [*tool, *about, "paperlib/core/scores.npz"])
    with pytest.raises(release.ReleaseError, match="a kind of file that the tool has none of"):
        release.check_contents(wheel, tmp_path)


def test_release_is_offered_and_states_the_version_of_the_package():
    command = [sys.executable, str(ROOT / ".ci" / "release.py"), "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == paperlib.__version__
    assert {"release", "changelog"} <= TARGETS
