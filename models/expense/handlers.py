"""What the expense model's tasks do when it is run as a demonstration.

    seams-lab run models/expense --container api --handlers models/expense/handlers.py

A handler gets a copy of the process data and the task's context, and returns what changes.
"""

from typing import Any


def collect_open_expenses(data: dict[str, Any], context: Any) -> dict[str, Any]:
    """Pretend that three expenses are open."""
    return {"open_expenses": 3}


handlers = {"collect_open_expenses": collect_open_expenses}
