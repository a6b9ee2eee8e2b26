"""Dropdown explorers: choosing an option changes the picture under it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ipywidgets import VBox

import seams_lab as sl

AT = "2026-11-01T00:00:00Z"


@pytest.fixture(scope="module")
def expense(models: Path) -> sl.Model:
    return sl.load(models / "expense")


EXPLORERS: list[tuple[Callable[[sl.Model], VBox], list[str], str]] = [
    (
        lambda m: sl.explore.diagrams(m, AT),
        ["approval", "digest", "month_end", "payout", "year_close"],
        "Year",
    ),
    (
        lambda m: sl.explore.schedules(m, "2026-11-01", "2027-01-01"),
        ["(all)", "correction_period", "reminder_due", "every_morning", "month_ends", "year_ends"],
        "year_ends",
    ),
    (
        lambda m: sl.explore.losses(m),
        ["db01", "host_b", "job01", "app01", "app02", "host_a", "web01"],
        "web01 lost",
    ),
]


@pytest.mark.parametrize(("make", "options", "said"), EXPLORERS)
def test_choosing_changes_the_picture(
    expense: sl.Model, make: Callable[[sl.Model], VBox], options: list[str], said: str
) -> None:
    dropdown, shown = make(expense).children
    assert list(dropdown.options) == options
    before = shown.value
    dropdown.value = options[-1]
    assert shown.value != before
    assert said in shown.value
    dropdown.value = options[0]
    assert shown.value == before


def test_the_representation_is_one_short_line(expense: sl.Model) -> None:
    assert repr(sl.explore.losses(expense)) == "<Explorer: choose a node out of 7>"


def test_nothing_to_choose_from_is_said(models: Path) -> None:
    with pytest.raises(sl.UnusableInput, match="at least one node"):
        sl.explore.losses(sl.load(models / "expense" / "digest.bpmn"))
