"""Advice on what to install: it names the checkout, or the distribution, which is not called as it
is imported.
"""

import re
import tomllib
from pathlib import Path

import pytest

import paperlib
from paperlib.cli import install
from paperlib.report.provenance import package_version
from tests.refusals import refused

ROOT = Path(paperlib.__file__).parents[1]


def test_from_a_checkout_also_one_that_pip_installed_from_its_folder_is_installed(
    tmp_path, monkeypatch
):
    assert install.checkout() == ROOT
    monkeypatch.chdir(ROOT)
    assert re.fullmatch(r"pip install (-e )?'\.\[train\]'", install.install_command("train"))
    assert re.fullmatch(r"pip install (-e )?\.", install.install_command())
    monkeypatch.chdir(tmp_path)
    assert f"'{ROOT}[train]'" in install.install_command("train")
    folder = tmp_path / "a checkout"
    folder.mkdir()
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    monkeypatch.setattr(
        paperlib, "__file__", str(tmp_path / "site-packages" / "paperlib" / "__init__.py")
    )
    monkeypatch.setattr(install, "_direct_url", lambda: {"url": folder.as_uri(), "dir_info": {}})
    assert install.checkout() == folder
    assert install.install_command("run") == f"pip install '{folder}[run]'"


def test_a_missing_module_names_its_extra_and_without_a_checkout_the_distribution(
    monkeypatch,
):
    for module, package, extra in (
        ("sklearn.linear_model", "scikit-learn", "features"),
        ("torch", "torch", "train"),
        ("dp_accounting", "dp-accounting", "train"),
        ("PIL", "pillow", "images"),
        ("transformers", "transformers", "language"),
    ):
        said = install.missing_package(module)
        assert said.startswith(f"{package} is not installed; to get it: pip install")
        assert f"[{extra}]" in said
        assert "\n" not in said
    assert install.missing_package("no_such_module") == "no_such_module is not installed"
    refused(r"extra: expected one of .*train.*; got 'trains'", install.install_command, "trains")
    monkeypatch.setattr(install, "checkout", lambda: None)
    assert install.install_command("train") == "pip install 'leakbound[train]'"
    assert install.missing_package("transformers").endswith("pip install 'leakbound[language]'")
    for command, extra in (
        ("audit-lm", "language"),
        ("audit-data", "train"),
        ("audit-data --kind text", "language"),
        ("canaries", "language"),
        ("", "train"),
    ):
        assert install.missing_package("torch", command).endswith(f"'leakbound[{extra}]'")
    assert install.missing_package("numpy").endswith("to get it: pip install leakbound")
    for extra in install.requirements():
        assert "paperlib" not in install.install_command(extra)


def test_the_distribution_is_that_of_the_project_and_its_metadata_have_the_same_extras(
    monkeypatch,
):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == install.DISTRIBUTION
    in_checkout = install.requirements()
    monkeypatch.setattr(install, "checkout", lambda: None)
    installed = install.requirements()
    assert list(map(len, installed.values())) == list(map(len, in_checkout.values()))
    assert installed.keys() == in_checkout.keys()
    assert package_version("paperlib") == paperlib.__version__


def without_torch(*_, **__):
    raise ModuleNotFoundError("No module named 'torch'", name="torch")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("audit-data docs.txt --target gpt2 --kind text", "language"),
        ("audit-data rows.csv --target model.py:losses --label label", "train"),
        ("canaries t.txt --count 2 --kind high-temperature --model m --out new.txt", "language"),
    ],
)
def test_one_extra_has_all_that_the_command_misses(here, monkeypatch, command, words, extra):
    monkeypatch.setattr("paperlib.audits.panoramia.files.audit_files", without_torch)
    monkeypatch.setattr("paperlib.generators.canaries.make_canaries", without_torch)
    Path("docs.txt").write_text("a text\n" * 9)
    Path("t.txt").write_text("one text\nanother text\n")
    Path("rows.csv").write_text("a,label\n1,0\n2,1\n")
    Path("model.py").write_text("def losses(rows):\n    return rows.a\n")
    command.refuses(words, f"torch is not installed; to get it: pip install .*[{extra}]")
