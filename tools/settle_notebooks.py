"""Run the notebooks and write them in settled form: the same bytes on each machine.

Cell ids are numbers in reading order, metadata says only what a reader needs, timings and
widget state are dropped, and names that change with each run (widget models, addresses) are
replaced. ``--check`` writes nothing and says which notebooks would change; the bytes of PNG
images do not count there.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

REPO = Path(__file__).resolve().parents[1]
SANITIZE = REPO / "tests" / "nbval_sanitize.cfg"
WIDGET = "application/vnd.jupyter.widget-view+json"
# What the file says of the kernel; versions of Python and of the front end change nothing.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT_CELL_METADATA = {"tags"}
CELL_SECONDS = 60


def patterns(path: Path = SANITIZE) -> dict[str, tuple[re.Pattern[str], str]]:
    """Return section → (pattern, replacement) of nbval's sanitize file."""
    found = re.findall(r"^\[(\w+)\]\nregex: (.*)\nreplace: (.*)$", path.read_text(), re.MULTILINE)
    return {name: (re.compile(regex), replacement) for name, regex, replacement in found}


def run(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells of *notebook* in *folder*, in place; a cell that fails raises."""
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()


def settle(notebook: nbformat.NotebookNode) -> None:
    """Bring a notebook that has been run into settled form, in place."""
    # Pictures stay: they are what a reader of the file sees.
    replacements = [found for name, found in patterns().items() if name != "png"]
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:02d}"
        cell.metadata = nbformat.from_dict(
            {key: cell.metadata[key] for key in sorted(KEPT_CELL_METADATA & cell.metadata.keys())}
        )
        cell.pop("attachments", None)
    for number, output in enumerate(outputs(notebook), start=1):
        if "data" in output and WIDGET in output.data:
            output.data[WIDGET]["model_id"] = f"widget-{number:02d}"
        for holder, mime in texts(output):
            for pattern, replacement in replacements:
                holder[mime] = pattern.sub(replacement, holder[mime])


def outputs(notebook: nbformat.NotebookNode) -> Iterator[Any]:
    """Yield the outputs of all code cells in reading order."""
    for cell in notebook.cells:
        yield from cell.get("outputs", ())


def texts(output: Any) -> Iterator[tuple[Any, str]]:
    """Yield (mapping, key) of each text in an output."""
    if "text" in output:
        yield output, "text"
    for mime, value in output.get("data", {}).items():
        if isinstance(value, str):
            yield output.data, mime


def settled_text(path: Path) -> str:
    """Run the notebook at *path* and return its settled form; the file is not touched."""
    notebook = nbformat.read(path, as_version=4)
    run(notebook, path.parent)
    settle(notebook)
    return str(nbformat.writes(notebook)) + "\n"


def without_pictures(text: str) -> str:
    """Return the text of a notebook with the bytes of its PNG images left out."""
    pattern, replacement = patterns()["png"]
    text = pattern.sub(replacement, text)
    return re.sub(r'"image/png": "[^"]*"', '"image/png": "PNG"', text)


def report_changes(path: Path, old: str, new: str) -> None:
    """Print the lines of *path* that settling would change."""
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{path.name} as it is", "settled", lineterm="", n=0
    )
    for line in lines:
        print(line if len(line) <= 200 else f"{line[:200]} …")


def main(arguments: list[str] | None = None) -> int:
    """Settle the notebooks; return 1 if one fails or, with ``--check``, would change."""
    parser = argparse.ArgumentParser(description="Run notebooks and write them in settled form.")
    parser.add_argument("notebooks", nargs="*", type=Path, help="files (all of notebooks/)")
    parser.add_argument("--check", action="store_true", help="write nothing, say what would change")
    options = parser.parse_args(arguments)
    status = 0
    for path in options.notebooks or sorted((REPO / "notebooks").glob("*.ipynb")):
        old = path.read_text(encoding="utf-8")
        try:
            new = settled_text(path)
        except CellExecutionError as error:
            print(f"{path.name}: a cell failed\n{error}", file=sys.stderr)
            status = 1
            continue
        same = without_pictures(old) == without_pictures(new)
        if options.check and not same:
            report_changes(path, without_pictures(old), without_pictures(new))
            status = 1
        elif not options.check and old != new:
            path.write_text(new, encoding="utf-8")
        print(
            f"{path.name}: {'settled' if same else 'not settled' if options.check else 'written'}"
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
