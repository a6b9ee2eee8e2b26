"""Resolve the pinned sets that `make lab`, `make test` and `make bench` install.

Run on Python 3.11, the oldest version the project supports: what installs there also
installs on the newer ones. Each set is a layer that holds only what the layers it stands on
do not, so that one virtual environment can take them all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[1]
OLDEST = (3, 11)


@dataclass(frozen=True)
class Layer:
    """One pinned file.

    Parameters
    ----------
    file : str
        Path from the root of the project.
    extras : tuple of str
        The extras of pyproject.toml that this layer adds; the first layer adds the core too.
    below : tuple of str
        The files that are installed before this one.
    agrees : tuple of str
        Files whose versions this layer must take too, though it does not need them.
    """

    file: str
    extras: tuple[str, ...]
    below: tuple[str, ...] = ()
    agrees: tuple[str, ...] = ()


LAYERS = (
    Layer("binder/requirements.txt", ("notebook",)),
    Layer("requirements/test.txt", ("test",), below=("binder/requirements.txt",)),
    Layer(
        "requirements/bench.txt",
        ("bench",),
        below=("binder/requirements.txt",),
        agrees=("requirements/test.txt",),
    ),
)


def wanted(layer: Layer, project: dict[str, Any]) -> list[str]:
    """Return the requirements of pyproject.toml that *layer* answers to, sorted."""
    asked = [] if layer.below else list(project["dependencies"])
    for extra in layer.extras:
        asked += project["optional-dependencies"][extra]
    return sorted(asked, key=str.lower)


def read_pins(path: Path) -> dict[str, str]:
    """Return name → version of the ``name==version`` lines of a pinned file."""
    lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
    return dict(line.split("==") for line in lines if "==" in line)


def resolve(requirements: list[str], constraints: list[Path]) -> dict[str, str]:
    """Ask pip which versions it would install, wheels only, and return name → version."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        command = [sys.executable, "-m", "pip", "--quiet", "install", "--dry-run"]
        command += ["--ignore-installed", "--only-binary", ":all:", "--report", str(report)]
        for path in constraints:
            command += ["--constraint", str(path)]
        subprocess.run([*command, *requirements], check=True)
        installed = json.loads(report.read_text())["install"]
    return {item["metadata"]["name"]: item["metadata"]["version"] for item in installed}


def write(layer: Layer, pins: dict[str, str]) -> None:
    """Write *pins* to the file of *layer*, sorted by name."""
    path = REPO / layer.file
    path.parent.mkdir(exist_ok=True)
    head = ["# Made by tools/pin.py (make pins) from pyproject.toml; do not edit."]
    if layer.below:
        head.append(f"# Install on top of {' and '.join(layer.below)}.")
    lines = [f"{name}=={pins[name]}" for name in sorted(pins, key=str.lower)]
    path.write_text("\n".join([*head, *lines]) + "\n")


def main() -> int:
    """Write every pinned file anew; return the exit status."""
    if sys.version_info[:2] != OLDEST:
        print(f"pins are resolved on Python {OLDEST[0]}.{OLDEST[1]}, this is {sys.version}")
        return 2
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    for layer in LAYERS:
        stands_on = [REPO / file for file in layer.below]
        pins = resolve(wanted(layer, project), stands_on + [REPO / f for f in layer.agrees])
        for path in stands_on:
            for name in read_pins(path):
                pins.pop(name, None)
        write(layer, pins)
        print(f"{layer.file}: {len(pins)} pins")
    return 0


if __name__ == "__main__":
    sys.exit(main())
