"""Findings: one record type, one order, no duplicates; and the page that explains each check."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from seams_lab.findings import CHECKS, SEVERITIES, Finding, Findings

ONE = Finding("a.bpmn", "s", "short-period", "warning", "it fires often", "check the unit", 3)
TWO = Finding("a.trig", "urn:c", "schedule-store", "error", "no store", "name one")

some_findings = st.lists(
    st.builds(
        Finding,
        file=st.sampled_from(["a", "b"]),
        element=st.sampled_from(["", "x", "y"]),
        check=st.sampled_from(sorted(CHECKS)),
        severity=st.sampled_from(SEVERITIES),
        message=st.sampled_from(["m", "n"]),
        fix=st.sampled_from(["f", "g"]),
        line=st.integers(0, 1),
    )
)


@given(found=some_findings, seed=st.randoms(use_true_random=False))
def test_the_order_in_which_findings_are_made_does_not_matter(
    found: list[Finding], seed: object
) -> None:
    shuffled = list(found)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]

    def key(f: Finding) -> tuple[str, ...]:
        return f.file, f.element, f.check, f.severity, f.message

    first, second = Findings(found), Findings(shuffled)
    assert first == second
    assert [key(f) for f in first] == sorted({key(f) for f in found})
    assert sorted([*first.errors, *first.warnings], key=key) == list(first)
    assert len(first.to_frame()) == len(first)


def test_a_repeated_finding_is_kept_once_and_another_message_is_another_finding() -> None:
    again = Finding(**{**_fields(ONE), "line": 9})
    other = Finding(**{**_fields(ONE), "message": "it fires very often"})
    for found in ([ONE, again], [again, ONE], [ONE, again, ONE]):
        assert list(Findings(found)) == [ONE]  # the first of its lines
    assert len(Findings([ONE, other])) == 2


def _fields(finding: Finding) -> dict[str, object]:
    return {name: getattr(finding, name) for name in Finding.__slots__}


def test_how_many_in_words() -> None:
    more = [Finding(**{**_fields(TWO), "element": str(n)}) for n in range(3)]
    assert Findings().summary() == "no findings"
    assert Findings([ONE]).summary() == "1 warning"
    assert Findings([TWO, ONE]).summary() == "1 error, 1 warning"
    assert Findings([*more, ONE]).summary() == "3 errors, 1 warning"


def test_what_a_notebook_shows() -> None:
    both = Findings([TWO, ONE])
    assert repr(both).splitlines() == [
        "1 error, 1 warning",
        "warning: a.bpmn: s: short-period: it fires often. Fix: check the unit",
        "error: a.trig: urn:c: schedule-store: no store. Fix: name one",
    ]
    assert repr(Findings()) == "no findings"
    assert "<table" not in Findings()._repr_html_()
    assert "schedule-store" in both._repr_html_()


def test_text_of_a_file_is_no_html() -> None:
    evil = Finding("a", "<script>alert(1)</script>", "short-period", "warning", "<u>", "<i>")
    shown = Findings([evil])._repr_html_()
    assert "<script>" not in shown
    assert "<u>" not in shown
    assert "&lt;script&gt;" in shown


def test_the_table_has_its_columns_also_when_it_is_empty() -> None:
    columns = ["file", "line", "element", "check", "severity", "message", "fix"]
    assert list(Findings().to_frame().columns) == columns
    frame = Findings([TWO, ONE]).to_frame()
    assert list(frame.columns) == columns
    assert list(frame["check"]) == ["short-period", "schedule-store"]
    assert list(frame["line"]) == [3, 0]


def test_an_empty_list_of_findings_is_false_and_equal_to_no_findings() -> None:
    assert not Findings()
    assert Findings() == ()
    assert Findings([ONE]).errors == ()
    assert Findings([TWO]).warnings == ()


# ---------------------------------------------------------------- docs/checks.md


def sections(repo: Path) -> dict[str, str]:
    """Heading → text of the sections of docs/checks.md that explain a check."""
    text = (repo / "docs" / "checks.md").read_text("utf-8")
    parts = re.split(r"(?m)^### `([^`]+)`\n", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_explains_each_check_in_the_order_of_the_code(repo: Path) -> None:
    assert list(sections(repo)) == list(CHECKS)


def test_each_explanation_says_why_it_matters_and_how_to_mend_it(repo: Path) -> None:
    for check, text in sections(repo).items():
        for word in ("**Means.**", "**Matters because.**", "**Mend.**"):
            assert text.count(word) == 1, (check, word)
        assert re.search(r"(?m)^Severity: (error|warning)", text), check


def test_the_page_names_models_that_show_the_check(repo: Path) -> None:
    broken = repo / "models" / "broken"
    for check, text in sections(repo).items():
        names = re.findall(r"\.\./models/broken/(\w+)\)", text)
        assert names, check
        for name in names:
            shown = (broken / name / "expected.json").read_text("utf-8")
            assert re.search(rf'"check": "{check}[":]', shown), (check, name)


def test_the_page_has_the_severities_that_the_models_show(repo: Path) -> None:
    shown: dict[str, set[str]] = {}
    for path in (repo / "models" / "broken").glob("*/expected.json"):
        for row in json.loads(path.read_text("utf-8")):
            shown.setdefault(row["check"].partition(":")[0], set()).add(row["severity"])
    for check, text in sections(repo).items():
        line = re.search(r"(?m)^Severity: (.*)$", text)
        assert line
        assert all(severity in line[1] for severity in shown[check]), check
