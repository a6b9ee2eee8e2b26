"""The notebooks as files: run, with outputs, small, of no machine; and that nbval is strict."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tools import settle_notebooks as tool

REPO = Path(__file__).parents[1]
NOTEBOOKS = sorted((REPO / "notebooks").glob("*.ipynb"))
LARGEST = 400_000
MACHINE_PATH = re.compile(r"/(?:home|root|tmp|Users|work|var|opt|usr)/[\w.-]+")

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@each_notebook
def test_opens_with_a_title(path: Path) -> None:
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.cell_type == "markdown"
    assert re.match(r"# \S", first.source)


@each_notebook
def test_each_code_cell_was_run_in_order(path: Path) -> None:
    counts = [cell.execution_count for cell in code_cells(path)]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_holds_the_outputs_that_nbval_compares(path: Path) -> None:
    silent = [
        cell.source for cell in code_cells(path) if displays(cell.source) and not cell.outputs
    ]
    assert silent == []


@each_notebook
def test_is_small_and_settled_and_of_no_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    assert notebook.metadata == tool.METADATA
    assert len(text.encode()) < LARGEST
    assert MACHINE_PATH.findall(tool.without_pictures(text)) == []
    tool.settle(notebook)
    assert nbformat.writes(notebook) + "\n" == text, "run `make settle`"


@each_notebook
def test_shows_no_error_and_no_warning(path: Path) -> None:
    outputs = [output for cell in code_cells(path) for output in cell.outputs]
    assert [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"] == []


@pytest.mark.parametrize(
    ("source", "shows"),
    [
        ("1 + 1", True),
        ("x = 1\nx", True),
        ("print('a')", True),
        ("x = 1", False),
        ("import this_is_quiet", False),
        ("x;", False),
        ("for x in ():\n    x", False),
    ],
)
def test_a_cell_that_ends_in_an_expression_displays(source: str, shows: bool) -> None:
    assert displays(source) is shows


SAMPLE = [
    "import datetime\nprint('total 42 at', datetime.date(2026, 11, 9))",
    "object()",
    "class Figure:\n"
    "    def _repr_html_(self):\n"
    '        return \'<img alt="7 timers" src="data:image/png;base64,iVBORw0KGgo=">\'\n'
    "Figure()",
]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The settled text of a small notebook with a number, a date, an address and a picture."""
    path = tmp_path_factory.mktemp("sample") / "sample.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in SAMPLE]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return tool.settled_text(path)


# What is changed in the outputs of the sample, and whether nbval must let it pass.
CHANGES = {
    "nothing": ("", "", True),
    "png_bytes": ("iVBORw0KGgo=", "AAAABBBB", True),
    "address": ("0xADDRESS", "0x7f0123456789", True),
    "number": ("total 42 at", "total 43 at", False),
    "date": ("2026-11-09", "2026-11-10", False),
    "alternative": ("7 timers", "8 timers", False),
}


@pytest.fixture(scope="module")
def failing(sample: str, repo: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The changes that strict nbval does not let pass, all tried in one run of it."""
    folder = tmp_path_factory.mktemp("project") / "notebooks"
    folder.mkdir()
    (folder.parent / "models").symlink_to(repo / "models")
    for change, (old, new, _) in CHANGES.items():
        write_tampered(json.loads(sample), old, new, folder / f"{change}.ipynb")
    first = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))
    write_tampered(first, "", "", folder / "first.ipynb")
    write_tampered(first, *a_number(first), folder / "first_tampered.ipynb")
    return nbval(folder)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_strict_nbval_sees_what_matters(failing: set[str], change: str) -> None:
    passes = CHANGES[change][2]
    assert (change not in failing) is passes


@pytest.mark.slow
def test_a_tampered_number_in_the_first_notebook_is_seen(failing: set[str]) -> None:
    assert "first" not in failing
    assert "first_tampered" in failing


def test_settling_drops_what_differs_between_runs() -> None:
    cell = nbformat.v4.new_code_cell("x", metadata={"execution": {"t": "now"}, "tags": ["kept"]})
    cell.outputs = [
        nbformat.v4.new_output("execute_result", {tool.WIDGET: {"model_id": "f" * 32}}),
        nbformat.v4.new_output("stream", name="stdout", text="<X at 0x7f0123456789>, 0x1F, 2026"),
    ]
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {"state": {}}})
    tool.settle(notebook)
    assert notebook.metadata == tool.METADATA
    assert (cell.id, dict(cell.metadata)) == ("cell-01", {"tags": ["kept"]})
    assert cell.outputs[0].data[tool.WIDGET]["model_id"] == "widget-01"
    assert cell.outputs[1].text == "<X at 0xADDRESS>, 0x1F, 2026"


def test_check_says_what_settling_would_change(
    sample: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sample.ipynb"
    path.write_text(
        sample.replace("total 42", "total 43").replace("print('total 43", "print('total 42")
    )
    before = path.read_text()
    assert tool.main(["--check", str(path)]) == 1
    assert '+      "total 42 at 2026-11-09\\n"' in capsys.readouterr().out
    assert path.read_text() == before
    assert tool.main([str(path)]) == 0
    assert path.read_text() == sample
    assert tool.main(["--check", str(path)]) == 0


def code_cells(path: Path) -> list[Any]:
    """The code cells of the notebook at *path*."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def displays(source: str) -> bool:
    """Whether a cell ends in an expression whose value Jupyter shows (or in a print)."""
    if source.rstrip().endswith(";"):
        return False
    body = ast.parse(source).body
    return bool(body) and isinstance(body[-1], ast.Expr)


def write_tampered(notebook: Any, old: str, new: str, path: Path) -> None:
    """Write *notebook* to *path* with *old* replaced in its outputs, never in its sources."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and old:
            outputs = json.dumps(cell["outputs"])
            cell["outputs"] = json.loads(outputs.replace(old, new))
    path.write_text(json.dumps(notebook), encoding="utf-8")


def a_number(notebook: Any) -> tuple[str, str]:
    """The first number of two digits in the printed outputs, and another one."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            plain = output.get("text") or output.get("data", {}).get("text/plain") or []
            if found := re.search(r"\b\d\d\b", "".join(plain)):
                return found[0], str(99 - int(found[0]))
    raise AssertionError("no number is printed")


def nbval(folder: Path) -> set[str]:
    """Run the notebooks in *folder* as `make notebooks` does; the names of those that fail."""
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "--nbval"]
    command += ["--nbval-current-env", "--nbval-cell-timeout", "60", "--color=no"]
    command += ["--nbval-sanitize-with", str(tool.SANITIZE), f"--rootdir={folder}", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return set(re.findall(r"^FAILED (?:\S*/)?(\w+)\.ipynb::", done.stdout, re.MULTILINE))
