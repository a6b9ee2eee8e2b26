"""What the expense model's tasks do when it is run as a demonstration: they print a line.

    seams-lab run models/expense --container api --handlers models/expense/handlers.py

A handler gets a copy of the process data and the task's context, and returns what changes. It
may run again after a crash: a real one hands `context.key` to whatever must happen only once.
"""

from typing import Any


def say(data: dict[str, Any], context: Any) -> None:
    """Print what the task would do, and for which instance."""
    about = f": {data['title']}" if "title" in data else ""
    print(f"{context.name}{about} ({context.instance[:8]})", flush=True)


def collect_open_expenses(data: dict[str, Any], context: Any) -> dict[str, Any]:
    """Pretend that three expenses are open."""
    say(data, context)
    return {"open_expenses": 3}


def choose_method(data: dict[str, Any], context: Any) -> dict[str, Any]:
    """Pay small amounts in cash."""
    say(data, context)
    return {"method": "cash" if data.get("amount", 0) < 50 else "transfer"}


handlers = {
    "collect_open_expenses": collect_open_expenses,
    "choose_method": choose_method,
    **dict.fromkeys(
        [
            "archive_expense",
            "lock_expenses",
            "send_digest",
            "send_reminder",
            "send_report",
            "tell_submitter",
            "total_by_category",
            "total_by_team",
            "transfer_money",
            "validate_expense",
        ],
        say,
    ),
}
