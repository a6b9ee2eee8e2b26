"""Take the screenshot of the README: a notebook, run in JupyterLab, at its dropdown."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import ViewportSize

from tools import lab_browser

REPO = Path(__file__).resolve().parents[1]
SIZE: ViewportSize = {"width": 1280, "height": 900}


def take(notebook: str, target: Path, executable: str) -> None:
    """Run *notebook* (a name in notebooks/) and write what a person sees to *target*.

    The picture shows the dropdown if the notebook has one, else the top. RuntimeError if a cell
    fails.
    """
    with tempfile.TemporaryDirectory() as scratch:
        root, own = Path(scratch, "seams-lab"), Path(scratch, "jupyter")
        root.mkdir()
        own.mkdir()
        lab_browser.unrun_copy(REPO, root)
        with lab_browser.browser(executable) as browser, lab_browser.jupyterlab(root, own) as lab:
            page = browser.new_page(viewport=SIZE)
            lab_browser.open_notebook(page, lab, f"notebooks/{notebook}")
            lab_browser.run_all(page)
            if problems := lab_browser.errors(page):
                raise RuntimeError(f"{notebook}: {problems[0]}")
            page.keyboard.press("Control+b")  # the file browser makes room
            select = page.locator(".widget-dropdown select")
            if select.count():
                cell = page.locator(".jp-CodeCell").filter(has=select.first)
                cell.evaluate("cell => cell.scrollIntoView({block: 'start'})")
            page.wait_for_timeout(500)
            target.parent.mkdir(exist_ok=True)
            page.screenshot(path=target)


def main() -> int:
    """Take the screenshot; return the exit status."""
    parser = argparse.ArgumentParser(description="Take the screenshot of the README.")
    parser.add_argument("--notebook", default="01_read_a_model.ipynb", help="a name in notebooks/")
    parser.add_argument("--to", type=Path, default=REPO / "docs" / "screenshot.png")
    options = parser.parse_args()
    executable = lab_browser.find_browser()
    if executable is None:
        print(f"no browser on PATH: {', '.join(lab_browser.BROWSERS)}", file=sys.stderr)
        return 2
    take(options.notebook, options.to, executable)
    print(options.to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
