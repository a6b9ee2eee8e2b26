"""JupyterLab in a real browser: start both, open a notebook, run it, look at it.

Shared by the browser test and by tools/screenshot.py. Selectors are those of JupyterLab 4.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The browser asks nothing of the network by itself, and runs as root in a container.
BROWSER_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_SECONDS = 60.0
RUN_SECONDS = 120.0
NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden)"
IDLE = f"{NOTEBOOK} .jp-Notebook-ExecutionIndicator[data-status='idle']"
ERRORS = ", ".join(
    f"{NOTEBOOK} [data-mime-type='application/vnd.jupyter.{kind}']" for kind in ("error", "stderr")
)
SETTINGS = {
    # All cells are in the page, not only those in view.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    # No question about news and no look for updates: the machine may have no network.
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}


def find_browser() -> str | None:
    """Return the path of an installed Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its address on loopback and the token that opens it."""

    url: str
    token: str

    def address_of(self, path: str) -> str:
        """Return the address that opens the file at *path*, alone, in a workspace of its own."""
        return f"{self.url}lab/workspaces/{secrets.token_hex(4)}/tree/{path}?token={self.token}"


@contextlib.contextmanager
def jupyterlab(root: Path, scratch: Path) -> Iterator[Lab]:
    """Run JupyterLab on the folder *root* while the block lasts.

    Settings, data and the log lie in the new folder *scratch*, so that nothing of the user's is
    read or written.
    Raises RuntimeError with the log's end if it does not start within 60 seconds.
    """
    token = secrets.token_hex(16)
    places = {
        f"JUPYTER_{kind.upper()}_DIR": str(scratch / kind) for kind in ("config", "data", "runtime")
    }
    places["JUPYTERLAB_SETTINGS_DIR"] = str(scratch / "settings")
    places["JUPYTERLAB_WORKSPACES_DIR"] = str(scratch / "workspaces")
    for name, values in SETTINGS.items():
        settings = scratch / "settings" / f"{name}.jupyterlab-settings"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps(values))
    log = scratch / "jupyterlab.log"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += ["--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={token}"]
    command += [f"--ServerApp.root_dir={root}"]
    with log.open("wb") as sink:
        server = subprocess.Popen(
            command,
            env=os.environ | places,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Lab(_wait_for_url(server, scratch / "runtime", log), token)
    finally:
        _stop(server)


def _wait_for_url(server: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Return the URL from the file that the server writes once it listens."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        for path in runtime.glob(f"jpserver-{server.pid}.json"):
            with contextlib.suppress(json.JSONDecodeError):  # half written
                return str(json.loads(path.read_text())["url"])
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server and its kernels: asked first (it ends its kernels), then killed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(timeout=20)


@contextlib.contextmanager
def browser(executable: str) -> Iterator[Browser]:
    """Run a headless browser while the block lasts."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, args=BROWSER_ARGUMENTS)
        try:
            yield running
        finally:
            running.close()


def open_notebook(page: Page, lab: Lab, path: str) -> None:
    """Open the notebook at *path* (from the root of *lab*) and wait for an idle kernel."""
    page.goto(lab.address_of(path))
    page.locator(f"{NOTEBOOK} .jp-Cell").first.wait_for(timeout=START_SECONDS * 1000)
    # The notebook's own indicator is idle before there is a kernel; the status bar is not.
    kernel = page.locator("#jp-main-statusbar").get_by_text("| Idle")
    kernel.wait_for(timeout=START_SECONDS * 1000)


def run_all(page: Page) -> None:
    """Run all cells from the Run menu; wait until each was run, or one failed.

    The notebook must hold no outputs yet: a number at each code cell is the sign of the end.
    """
    page.locator("#jp-MainMenu .lm-MenuBar-item").get_by_text("Run", exact=True).click()
    page.locator("[data-command='runmenu:run-all']").click()
    page.wait_for_function(
        """([notebook, errors]) => {
            const cells = [...document.querySelectorAll(notebook + ' .jp-CodeCell')]
            const ran = cell => /^\\[\\d+\\]:$/.test(
                cell.querySelector('.jp-InputPrompt').textContent.trim())
            return document.querySelector(errors) !== null || (cells.length > 0 && cells.every(ran))
        }""",
        arg=[NOTEBOOK, ERRORS],
        timeout=RUN_SECONDS * 1000,
    )
    page.locator(IDLE).first.wait_for(timeout=RUN_SECONDS * 1000)


def errors(page: Page) -> list[str]:
    """Return the text of each error and warning that the open notebook shows."""
    return page.locator(ERRORS).all_inner_texts()


def unrun_copy(repo: Path, root: Path) -> None:
    """Copy the notebooks, without their outputs, and the models they read to *root*."""
    shutil.copytree(repo / "models", root / "models")
    (root / "notebooks").mkdir()
    for path in sorted((repo / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = [], None
        (root / "notebooks" / path.name).write_text(json.dumps(notebook), encoding="utf-8")
