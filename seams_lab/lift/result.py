"""What lift would write: to look at, to show as a diff, and to write in one step."""

from __future__ import annotations

import difflib
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from seams_lab.errors import UnusableInput
from seams_lab.lift.block import read_text


@dataclass(frozen=True)
class FileLift:
    """What lift does to one TriG file.

    ``old`` is the text now (None: the file is new), ``new`` the text after; ``added`` and
    ``removed`` count triples; ``notes`` say what was not lifted, and why.
    """

    path: Path
    old: str | None
    new: str
    added: int
    removed: int
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.old != self.new

    def __repr__(self) -> str:
        state = "new" if self.old is None else "changed" if self.changed else "as it was"
        return f"<FileLift {self.path}: {state}, +{self.added} -{self.removed} triples>"


@dataclass(frozen=True)
class LiftPlan:
    """What lift would write: look at it, show `diff`, then `write`.

    ``unread`` holds the messages of BPMN files that cannot be read: their index entries, if
    any, stay as they are. ``remarks`` are notes that belong to no TriG file.
    """

    files: tuple[FileLift, ...]
    unread: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return any(f.changed for f in self.files)

    @property
    def notes(self) -> list[str]:
        """Every note, the unreadable files first."""
        return [*self.unread, *self.remarks, *(n for f in self.files for n in f.notes)]

    def diff(self) -> str:
        """Return a unified diff of all changes; "" when there are none."""
        return "".join(_diff(f) for f in self.files if f.changed)

    def write(self) -> list[Path]:
        """Write the changed files, each in one step, and return their paths.

        Raises UnusableInput, before anything is written, for a file that is a link, read-only
        or no longer as it was planned for; and when the folder cannot be written to.
        """
        changed = [f for f in self.files if f.changed]
        for file in changed:
            _refuse_unwritable(file)
        for file in changed:
            _replace(file)
        return [f.path for f in changed]

    def __repr__(self) -> str:
        added, removed = (sum(getattr(f, w) for f in self.files) for w in ("added", "removed"))
        return (
            f"<LiftPlan: {sum(f.changed for f in self.files)} of {len(self.files)} file(s) "
            f"change, +{added} -{removed} triples, {len(self.notes)} note(s)>"
        )


def _diff(file: FileLift) -> str:
    def lines(text: str) -> list[str]:
        return re.findall(r"[^\n]*\n|[^\n]+", text)

    old, new = lines(file.old or ""), lines(file.new)
    before = "/dev/null" if file.old is None else str(file.path)
    changes = difflib.unified_diff(old, new, before, str(file.path))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in changes
    )


def _refuse_unwritable(file: FileLift) -> None:
    path = file.path
    seen = None
    if path.is_symlink():
        seen, fix = "a symbolic link", "lift the file that it leads to"
    elif file.old is None:
        if path.exists():
            seen, fix = "there now, and was not when lift looked", "lift again"
    elif not path.is_file() or read_text(path) != file.old:
        seen, fix = "no longer as it was when lift looked", "lift again"
    elif not path.stat().st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):
        seen, fix = "read-only", "make it writable"
    if seen:
        raise UnusableInput(str(path), seen, "a plain file that lift may write", fix)


def _replace(file: FileLift) -> None:
    """Write a file in one step: a crash leaves the old text or the new, never a part."""
    temporary = file.path.with_name(f".seams-lab-{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as stream:
            stream.write(file.new.encode())
            stream.flush()
            os.fsync(stream.fileno())
        if file.old is not None:
            temporary.chmod(stat.S_IMODE(file.path.stat().st_mode))
        os.replace(temporary, file.path)
    except OSError as error:
        raise UnusableInput(
            str(file.path), f"cannot be written ({error.strerror or error})",
            "a folder that lift may write to", "check its permissions and free space",
        ) from None  # fmt: skip
    finally:
        temporary.unlink(missing_ok=True)
