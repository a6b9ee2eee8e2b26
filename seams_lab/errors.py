"""The errors of seams-lab: one tree, and messages that a person can act on.

A message quotes the thing at fault, the text that was seen, what was expected and the fix.
"""

from __future__ import annotations


class SeamsError(Exception):
    """Base of every error that seams-lab raises on purpose."""


class UnusableInput(SeamsError):
    """A file or argument that cannot be used at all (the command line ends with status 2).

    Parameters
    ----------
    where : str
        The file, argument or element at fault.
    seen : str
        What was found there.
    expected : str
        What would have been fine.
    fix : str
        What the person can do now.
    """

    def __init__(self, where: str, seen: str, expected: str, fix: str) -> None:
        self.where, self.seen, self.expected, self.fix = where, seen, expected, fix
        super().__init__(f"{where}: {seen}; expected {expected}. Fix: {fix}")

    def __reduce__(self) -> tuple[type, tuple[str, str, str, str]]:
        return type(self), (self.where, self.seen, self.expected, self.fix)


class ResolutionError(SeamsError):
    """A question that the model should answer and does not.

    Parameters
    ----------
    subject : str
        The IRI (or, in a bare BPMN file, the id) the question was about.
    predicate : str
        What was asked, as a prefixed name: ``seam:schedules``, ``bpmn:timeCycle``.
    fact : str
        What the model says instead.
    code : str
        A stable code for scripts, such as ``NO_START``.
    fix : str
        What the person can do now.
    """

    def __init__(
        self, subject: str, predicate: str, fact: str, *, code: str = "UNRESOLVED", fix: str = ""
    ) -> None:
        self.subject, self.predicate, self.fact = subject, predicate, fact
        self.code, self.fix = code, fix
        super().__init__(f"{subject}: {predicate}: {fact}" + (f". Fix: {fix}" if fix else ""))

    def __reduce__(self) -> tuple[object, ...]:
        return _resolution_error, (self.subject, self.predicate, self.fact, self.code, self.fix)


def _resolution_error(
    subject: str, predicate: str, fact: str, code: str, fix: str
) -> ResolutionError:
    return ResolutionError(subject, predicate, fact, code=code, fix=fix)
