"""Advice on what to install: it names a folder or packages, and never this project's name on an
index.
"""

import re
from pathlib import Path

import paperlib
from paperlib.cli import install
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


def test_a_missing_module_and_without_a_checkout_an_extra_name_packages_never_this_project(
    monkeypatch,
):
    for module, package, extra in (
        ("sklearn.linear_model", "scikit-learn", "train"),
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
    assert "torch>=" in install.install_command("train")
    for extra in install.requirements():
        assert "paperlib" not in install.install_command(extra)
