"""A live panel for a notebook: move the clock of a runtime, complete its tasks, see what happens.

It needs ipywidgets; `explore.clock` says so where it is missing.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from ipywidgets import HTML, Button, Checkbox, Dropdown, HBox, Text, VBox

from seams_lab.clock import ManualClock
from seams_lab.errors import SeamsError, UnusableInput
from seams_lab.instants import to_text
from seams_lab.runtime.pace import manual
from seams_lab.runtime.runtime import Runtime

#: Instances that can be chosen and are listed, the newest first.
MOST = 200
_WIDE: dict[str, Any] = {
    "layout": {"width": "560px"},
    "style": {"description_width": "70px"},
}


class ClockPanel(VBox):  # type: ignore[misc]
    """Buttons that move a ManualClock, an instance to see, a task to complete, and tables.

    *Down meanwhile* makes the clock jump, as for a replica that did not run: the missed rule
    applies. Without it the clock stops at each due time on the way.

    Parameters
    ----------
    runtime : Runtime
    data : mapping, optional
        What the data field holds at first.

    Raises
    ------
    UnusableInput
        When the runtime's clock is not a ManualClock.
    """

    # An HTML widget for each thing that changes: Output widgets leave outputs that differ from
    # run to run.

    def __init__(self, runtime: Runtime, data: Mapping[str, Any] | None = None) -> None:
        self._runtime = runtime
        self._clock: ManualClock = manual(runtime.clock, "explore.clock")
        self.headline, self.picture, self.message, self.tables = (HTML() for _ in range(4))
        self.next_due = self._button("next due", self._to_next_due)
        self.hour = self._button("+1 hour", lambda: self._pass("PT1H"))
        self.day = self._button("+1 day", lambda: self._pass("P1D"))
        self.down = Checkbox(description="down meanwhile", indent=False)
        self.instance = Dropdown(description="instance:", **_WIDE)
        self.task = Dropdown(description="task:", **_WIDE)
        self.data = Text(json.dumps(dict(data or {})), description="data:", **_WIDE)
        self.complete = self._button("complete", self._complete)
        self.instance.observe(lambda _: self._draw(), names="value")
        super().__init__([
            self.headline, HBox([self.next_due, self.hour, self.day, self.down]),
            self.instance, self.picture,
            self.task, HBox([self.data, self.complete]), self.message, self.tables,
        ])  # fmt: skip
        self.refresh()

    def __repr__(self) -> str:
        return f"<ClockPanel: {self._runtime.status().headline()}>"

    def _button(self, text: str, act: Callable[[], str]) -> Button:
        """A button that does something, says what it did or why not, and shows the new state."""

        def on_click(_: Button) -> None:
            try:
                said = html.escape(act())
            except SeamsError as error:  # raised in a callback, it would go to a log nobody reads
                said = f"<b>{html.escape(str(error))}</b>"
            self.message.value = said
            self.refresh()

        button = Button(description=text)
        button.on_click(on_click)
        return button

    # ------------------------------------------------------------------ what the buttons do

    def _to_next_due(self) -> str:
        wake = self._runtime.next_wake()
        if wake is None:
            return "Nothing waits."
        return self._go(max(wake, self._clock.now()))

    def _pass(self, duration: str) -> str:
        return self._go(ManualClock(self._clock.now()).advance(duration).now())

    def _go(self, until: int) -> str:
        if self.down.value:
            self._clock.set(until)
            done = self._runtime.settle()
        else:
            done = self._runtime.run_until(until)
        return f"{to_text(until)}: {done} step{'' if done == 1 else 's'} done."

    def _complete(self) -> str:
        if self.task.value is None:
            return "No task is open."
        instance, task = self.task.value
        after = self._runtime.complete(instance, task, self._read_data())
        return f"Completed; {'; '.join(after.lines())}."

    def _read_data(self) -> dict[str, Any]:
        text = self.data.value.strip()
        try:
            given = json.loads(text or "{}")
        except (ValueError, RecursionError):  # of JSON nested too deep
            given = None
        if not isinstance(given, dict):
            raise UnusableInput(
                "data", repr(text), "a JSON object", 'write it as in {"approved": true}'
            )
        return given

    # ------------------------------------------------------------------ what is shown

    def refresh(self) -> None:
        """Show the present state of the store."""
        runtime = self._runtime
        instances, tasks = runtime.instances(limit=MOST), runtime.tasks()
        status = runtime.status()
        self.headline.value = f"<b>{html.escape(status.headline())}</b>"
        name = runtime.graph.name
        _choose(self.instance, {
            i.id: f"{name(i.process)} {i.correlation_key}: {i.status}" for i in instances
        })  # fmt: skip
        columns = (tasks[c] for c in ("instance", "task", "correlation_key", "name", "element"))
        _choose(self.task, {
            (one, task): f"{key}: {called or element}"
            for one, task, key, called, element in zip(*columns, strict=True)
        })  # fmt: skip
        self.complete.disabled = self.task.value is None
        self._draw()
        listed = pd.DataFrame(
            [(i.correlation_key, name(i.process), i.status, to_text(i.changed_at))
             for i in instances],
            columns=["correlation_key", "process", "status", "changed"],
        )  # fmt: skip
        timers = status.timers[["event", "expression", "next_due", "last_due", "fired", "skipped"]]
        shown = "".join(
            f"<h4>{title}</h4>{table.to_html(index=False, border=0)}"
            for title, table in [
                ("Timer starts", timers),
                ("Timers that instances wait on", status.waiting),
                ("Open tasks", tasks[["correlation_key", "name", "process", "since"]]),
                ("Instances", listed),
            ]
            if len(table)
        )
        # JupyterLab's class for tables that look like those of a cell.
        self.tables.value = f'<div class="jp-RenderedHTMLCommon">{shown}</div>'

    def _draw(self) -> None:
        chosen = self.instance.value
        self.picture.value = "" if chosen is None else self._runtime.diagram(chosen).to_html()


def _choose(dropdown: Dropdown, labels: Mapping[Any, str]) -> None:
    """Give *dropdown* new options, value → label; what was chosen stays chosen if it can."""
    chosen = dropdown.value
    dropdown.options = [(label, value) for value, label in labels.items()]
    # After an empty list, a dropdown chooses nothing by itself.
    dropdown.value = chosen if chosen in labels else next(iter(labels), None)
