"""The errors: one tree, and messages that say what was at fault and what to do."""

from __future__ import annotations

import copy
import pickle

import pytest

from seams_lab.errors import ResolutionError, SeamsError, UnusableInput

UNUSABLE = UnusableInput("m.bpmn, line 3", "a DOCTYPE", "plain XML", "delete it")
RESOLUTION = ResolutionError("e#T", "bpmn:timeCycle", "no start", code="NO_START", fix="add one")


def test_unusable_input_says_where_what_was_seen_what_was_expected_and_the_fix() -> None:
    assert str(UNUSABLE) == ("m.bpmn, line 3: a DOCTYPE; expected plain XML. Fix: delete it")
    assert (UNUSABLE.where, UNUSABLE.seen, UNUSABLE.expected, UNUSABLE.fix) == (
        "m.bpmn, line 3", "a DOCTYPE", "plain XML", "delete it",
    )  # fmt: skip


def test_a_resolution_error_says_what_was_asked_of_what_and_what_the_model_says() -> None:
    assert str(RESOLUTION) == "e#T: bpmn:timeCycle: no start. Fix: add one"
    assert (RESOLUTION.subject, RESOLUTION.predicate, RESOLUTION.fact) == (
        "e#T", "bpmn:timeCycle", "no start",
    )  # fmt: skip
    assert (RESOLUTION.code, RESOLUTION.fix) == ("NO_START", "add one")


def test_code_and_fix_of_a_resolution_error_may_be_left_out() -> None:
    error = ResolutionError("e", "seam:schedules", "none")
    assert str(error) == "e: seam:schedules: none"
    assert (error.code, error.fix) == ("UNRESOLVED", "")


@pytest.mark.parametrize("error", [UNUSABLE, RESOLUTION], ids=lambda e: type(e).__name__)
def test_all_errors_are_of_one_tree_and_can_be_copied_and_sent(error: SeamsError) -> None:
    assert isinstance(error, SeamsError)
    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


@pytest.mark.parametrize("kind", [UnusableInput, ResolutionError])
def test_an_error_of_this_kit_is_not_taken_for_one_of_python(kind: type[Exception]) -> None:
    assert not issubclass(kind, ValueError | OSError | LookupError)
