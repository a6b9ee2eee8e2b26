"""The pinned sets: what they say, and that the notebooks run on the one Binder installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import pin

FILES = [layer.file for layer in pin.LAYERS]
PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+")


@pytest.mark.parametrize("file", FILES)
def test_each_line_is_a_pin_in_order(repo: Path, file: str) -> None:
    lines = (repo / file).read_text().splitlines()
    names = [line for line in lines if not line.startswith("#")]
    assert [line for line in names if not PIN.fullmatch(line)] == []
    assert names == sorted(names, key=lambda line: line.split("==")[0].lower())


@pytest.mark.parametrize("layer", pin.LAYERS, ids=FILES)
def test_the_pins_meet_pyproject(repo: Path, layer: pin.Layer) -> None:
    project = tomllib.loads((repo / "pyproject.toml").read_text())["project"]
    pins: dict[str, str] = {}
    for file in (*layer.below, layer.file):
        pins |= {canonicalize_name(name): v for name, v in pin.read_pins(repo / file).items()}
    wanted = [Requirement(text) for text in pin.wanted(layer, project)]
    unmet = [
        str(requirement)
        for requirement in wanted
        if not requirement.specifier.contains(pins.get(canonicalize_name(requirement.name), "0"))
    ]
    assert unmet == []


def test_layers_agree_on_what_they_share(repo: Path) -> None:
    versions: dict[str, set[str]] = {}
    for file in FILES:
        for name, version in pin.read_pins(repo / file).items():
            versions.setdefault(canonicalize_name(name), set()).add(version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_binder_runs_a_python_that_the_project_supports(repo: Path) -> None:
    assert (repo / "binder" / "runtime.txt").read_text() == "python-3.12\n"
    assert os.access(repo / "binder" / "postBuild", os.X_OK)


@pytest.mark.slow
def test_the_notebooks_run_as_on_binder(repo: Path, tmp_path: Path) -> None:
    """What repo2docker does: a bare environment, the pinned set, then binder/postBuild."""
    project = tmp_path / "project"
    shutil.copytree(
        repo,
        project,
        ignore=shutil.ignore_patterns(".git", ".*_cache", ".venv", "__pycache__", ".hypothesis"),
    )
    environment = tmp_path / "environment"
    run([sys.executable, "-m", "venv", str(environment)], tmp_path, os.environ)
    # As in a shell with the environment active, and with nothing of this one.
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    variables["PATH"] = f"{environment / 'bin'}{os.pathsep}{variables['PATH']}"
    variables["VIRTUAL_ENV"] = str(environment)
    variables["JUPYTER_DATA_DIR"] = str(tmp_path / "data")
    install = ["pip", "install", "--quiet", "--no-compile", "-r", "binder/requirements.txt"]
    run(["python", "-m", *install], project, variables)
    run(["bash", "binder/postBuild"], project, variables)
    run(["python", "-m", "pip", "check"], project, variables)
    # The notebooks must find the installed package, not the folder beside them.
    shutil.rmtree(project / "seams_lab")
    notebooks = sorted(str(path) for path in (project / "notebooks").glob("*.ipynb"))
    assert notebooks
    run(["jupyter", "execute", "--kernel_name=python3", *notebooks], project, variables)


def run(command: list[str], folder: Path, variables: os._Environ[str] | dict[str, str]) -> None:
    """Run *command* in *folder*; a failure shows the end of what it printed."""
    executable = shutil.which(command[0], path=variables["PATH"])
    assert executable is not None, command[0]
    done = subprocess.run(
        [executable, *command[1:]],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command[:4])}\n{done.stdout[-4000:]}"
