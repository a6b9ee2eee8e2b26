"""What a notebook holds: the table of timers, the representation, the diagram, bare files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import seams_lab as sl

AT = "2026-11-01T00:00:00Z"


@pytest.fixture(scope="module")
def expense(models: Path) -> sl.Model:
    return sl.load(models / "expense")


def test_the_expense_model_is_clean(expense: sl.Model) -> None:
    assert expense.check(at=AT) == ()


def test_one_row_per_timer_with_who_runs_it(expense: sl.Model) -> None:
    table = expense.timers(at=AT).set_index("event")
    assert table["container"].to_dict() == {
        "correction_period": "api",
        "reminder_due": "api",
        "every_morning": "api",
        "month_ends": "report_worker",
        "year_ends": "api",
    }
    assert set(table["store"]) == {"expense_db"}
    assert table.loc["month_ends", "nodes"] == "job01"
    assert table.loc["reminder_due", "expression"] == '"PT48H"'
    assert set(table["verdict"]) == {"accept"}


@pytest.mark.parametrize(
    ("event", "first", "following"),
    [
        ("month_ends", "2026-01-31T18:00:00Z", "2026-11-30T18:00:00Z"),
        ("every_morning", "2026-11-09T08:00:00Z", "2026-11-09T08:00:00Z"),
        ("reminder_due", "2026-11-03T00:00:00Z", "2026-11-03T00:00:00Z"),
        ("year_ends", "2026-12-31T22:00:00Z", "2026-12-31T22:00:00Z"),
    ],
)
def test_first_and_next_due(expense: sl.Model, event: str, first: str, following: str) -> None:
    row = expense.timers(at=AT).set_index("event").loc[event]
    assert (row["first_due"], row["next_due"]) == (pd.Timestamp(first), pd.Timestamp(following))


def test_a_due_time_at_the_instant_itself_is_the_next_one(expense: sl.Model) -> None:
    row = expense.timers(at="2026-11-30T18:00:00Z").set_index("event").loc["month_ends"]
    assert row["next_due"] == pd.Timestamp("2026-11-30T18:00:00Z")


def test_now_is_the_default(expense: sl.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seams_lab.clock.now", lambda: 1_800_000_000_000_000)
    pd.testing.assert_frame_equal(expense.timers(), expense.timers(at=1_800_000_000_000_000))


def test_the_representation_counts_and_names(expense: sl.Model) -> None:
    for text in (repr(expense), expense._repr_html_()):
        assert "month_end_process" in text
        assert "expense_db" in text
    assert "timers       5" in repr(expense)


def test_names_from_files_are_not_markup(tmp_path: Path) -> None:
    path = tmp_path / "<b>x.bpmn"
    path.write_text(
        '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">'
        '<process id="&lt;script>"/></definitions>'
    )
    page = sl.load(path)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_bare_file_has_timers_and_no_nodes(models: Path) -> None:
    bare = sl.load(models / "expense" / "digest.bpmn")
    assert list(bare.timers(at=AT)["event"]) == ["every_morning"]
    assert list(bare.timers(at=AT)["process"]) == ["digest_process"]
    assert bare.check(at=AT) == ()
    assert bare.nodes == ()
    assert len(sl.due_times(bare, "2026-11-09", "2026-11-12")) == 3


def test_a_folder_of_bare_files_is_read_together(models: Path, tmp_path: Path) -> None:
    for name in ("digest", "payout"):
        (tmp_path / f"{name}.bpmn").write_bytes((models / "expense" / f"{name}.bpmn").read_bytes())
    assert sl.load(tmp_path).facts["processes"] == ["digest_process", "payout_process"]


@pytest.mark.parametrize(
    "name", ["approval", "approval_process", "https://example.org/expense/approval"]
)
def test_a_diagram_is_found_by_model_or_process(expense: sl.Model, name: str) -> None:
    picture = expense.diagram(name, at=AT)
    assert "after 2 days" in picture.alt
    assert picture.mime == "image/svg+xml"


@pytest.mark.parametrize("name", [None, "aproval"])
def test_a_diagram_that_is_not_there_is_refused_with_the_names(
    expense: sl.Model, name: str | None
) -> None:
    with pytest.raises(sl.UnusableInput, match="approval"):
        expense.diagram(name, at=AT)


def test_a_refused_timer_is_drawn_as_refused(tmp_path: Path, models: Path) -> None:
    text = (models / "expense" / "digest.bpmn").read_text()
    (tmp_path / "digest.bpmn").write_text(text.replace("2026-11-09T08:00:00Z/", ""))
    model = sl.load(tmp_path / "digest.bpmn")
    assert "NO_START [refused]" in model.diagram(at=AT).alt
    assert [f.check for f in model.check(at=AT)] == ["expression:NO_START"]


@pytest.mark.parametrize("path", ["nowhere", "README.md"])
def test_what_is_no_model_is_unusable(repo: Path, path: str) -> None:
    with pytest.raises(sl.UnusableInput, match=path):
        sl.load(repo / path)


def test_a_folder_without_a_model_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(sl.UnusableInput, match=r"no \.trig and no \.bpmn"):
        sl.load(tmp_path)


def test_trig_that_does_not_parse_is_unusable(tmp_path: Path) -> None:
    (tmp_path / "m.trig").write_text("@prefix : <https://e.org/> .\n:a :b")
    with pytest.raises(sl.UnusableInput, match=r"m\.trig: not readable as TriG"):
        sl.load(tmp_path)
