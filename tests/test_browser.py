"""The notebooks in a real JupyterLab in a real browser: a person moves a dropdown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from tools import lab_browser

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
# Whatever a notebook shows as a widget is a dropdown over a picture.
WITH_DROPDOWN = [
    path.name for path in NOTEBOOKS if "jupyter.widget-view" in path.read_text("utf-8")
]
PICTURE = "img, svg[role='img']"
# Of each picture its text alternative, and what a person sees.
SEEN = f"""output => [...output.querySelectorAll("{PICTURE}")].map(
    picture => picture.tagName === 'IMG'
        ? [picture.alt, picture.src]
        : [picture.getAttribute('aria-label') || '', picture.outerHTML])"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A headless browser; where there is none, a skip (in CI a failure)."""
    executable = lab_browser.find_browser()
    if executable is None:
        reason = f"no browser on PATH (looked for {', '.join(lab_browser.BROWSERS)})"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}; CI must install one")
        pytest.skip(reason)
    with lab_browser.browser(executable) as running:
        yield running


@pytest.fixture(scope="module")
def lab(
    chromium: Browser, repo: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[lab_browser.Lab]:
    """JupyterLab on a copy of the notebooks, as a person finds them, without outputs."""
    root = tmp_path_factory.mktemp("project")
    lab_browser.unrun_copy(repo, root)
    with lab_browser.jupyterlab(root, tmp_path_factory.mktemp("jupyter")) as running:
        yield running


def test_the_first_notebook_has_a_dropdown() -> None:
    assert "01_read_a_model.ipynb" in WITH_DROPDOWN


@pytest.mark.parametrize("name", WITH_DROPDOWN)
def test_moving_the_dropdown_changes_the_picture(
    name: str, chromium: Browser, lab: lab_browser.Lab
) -> None:
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    try:
        lab_browser.open_notebook(page, lab, f"notebooks/{name}")
        lab_browser.run_all(page)
        assert lab_browser.errors(page) == []

        select = page.locator(".widget-dropdown select").first
        output = page.locator(".jp-OutputArea-output").filter(has=select)
        expect(output.locator(PICTURE).first).to_be_visible()
        before = output.evaluate(SEEN)
        choose_another(select)
        page.wait_for_function(
            f"([output, before]) => JSON.stringify(({SEEN})(output)) !== JSON.stringify(before)",
            arg=[output.element_handle(), before],
        )
        after = output.evaluate(SEEN)

        assert len(after) == len(before), "a picture came or went"
        assert after != before
        assert all(alternative.strip() for alternative, _ in before + after)
        assert lab_browser.errors(page) == []
    finally:
        page.close()


def choose_another(select: Locator) -> None:
    """Choose the last option of a dropdown that is not the chosen one."""
    chosen = select.evaluate("select => select.selectedIndex")
    count = select.locator("option").count()
    assert count > 1, "a dropdown with nothing to choose"
    select.select_option(index=count - 1 if chosen != count - 1 else 0)
