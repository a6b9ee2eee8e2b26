"""Due times of many timers, next, latest and skipped ones, and counts per bin."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import peers
from benchmarks.peers import HOUR, Timers
from benchmarks.timing import Contender, Report, race
from seams_lab.due import frame_of
from seams_lab.expressions import LAST_INSTANT
from seams_lab.profile import parse
from seams_lab.series import Series, series


def our_series(timers: Timers, count: int) -> Series:
    """The series of seams-lab for the timers of a race, each with *count* firings."""
    texts = [f'"R{count}/{start:%Y-%m-%dT%H:%M:%SZ}/{timers.period}"' for start in timers.datetimes]
    return series([parse("timeCycle", text) for text in texts], 0)


def due_times(report: Report, timers: int, firings: int) -> None:
    """Make every due time: a fixed period, then a calendar one."""
    for period in ("PT1H", "P1M"):
        part = f"Due times, {timers:,} timers x {firings:,} firings, {period}, a due time"
        made = Timers(timers, period)
        table = our_series(made, firings)
        first, counts = table.window(made.low, LAST_INSTANT)
        names = [f"event{i}" for i in range(timers)]
        ours = table.expand(first, counts)[1].reshape(timers, firings)
        in_place = peers.NumpyInPlace(made, firings)
        peer_runs = peers.PEERS[period]
        n = timers * firings
        expand = partial(table.expand, first, counts)
        frame = partial(frame_of, table, names, names, made.low, LAST_INSTANT, 1 << 40)
        framed = same(micros(frame()["due"]).reshape(timers, firings), ours)
        bare, numpy_too = (
            "numpy, one column, memory used again",
            "numpy, two columns, new memory",
        )
        contenders = {
            bare: Contender(in_place, n, same(in_place(), ours)),
            "numpy, one column, new memory": Contender(
                in_place.anew, n, same(in_place.anew(), ours)
            ),
            numpy_too: Contender(
                in_place.with_k, n, f"{same(in_place.with_k()[1], ours)}; k and due"
            ),
            "seams-lab, arrays": Contender(expand, n, "k and due"),
            "seams-lab, DataFrame": Contender(frame, n, f"{framed}; event, process, k and due"),
        }
        for name, (run, most) in peer_runs.items():
            few = made.head(min(timers, most))
            job = run(few, firings)
            theirs = np.array([micros(row) for row in job()])
            contenders[name] = Contender(job, len(few) * firings, same(theirs, ours[: len(few)]))
        report.rows += race(part, contenders)
        for who in ("seams-lab, arrays", "seams-lab, DataFrame"):
            mine = report.each(part, who)
            for numpy in (bare, numpy_too):
                report.aim(
                    f"{period}: {who} against {numpy}", mine / report.each(part, numpy), most=3
                )
            spiff = report.each(part, "SpiffWorkflow, own stepping")
            least = 300 if period == "PT1H" else 100
            report.aim(f"{period}: {who} against SpiffWorkflow", spiff / mine, least=least)


def micros(found: Any) -> np.ndarray:
    """Due times of any make as microseconds since the epoch (UTC)."""
    if isinstance(found, pd.Series | pd.DatetimeIndex):
        found = pd.DatetimeIndex(found).tz_localize(None).to_numpy()
    if isinstance(found, np.ndarray) and found.dtype.kind == "M":
        whole: np.ndarray = found.astype("datetime64[us]").astype(np.int64)
        return whole
    return np.fromiter((peers.to_micros(one) for one in found), np.int64)


def same(theirs: np.ndarray, ours: np.ndarray) -> str:
    """Say whether a peer's due times are ours, and where the first one differs."""
    if theirs.shape == ours.shape:
        differs = np.argwhere(theirs != ours)
        if not len(differs):
            return "equal"
        row, k = differs[0]
        dates = [np.datetime64(int(x), "us").astype("M8[D]") for x in
                 (ours[row, 0], theirs[row, k], ours[row, k])]  # fmt: skip
        return (
            f"{len(differs) / theirs.size:.0%} differ: from {dates[0]}, k = {k}, it has "
            f"{dates[1]}, not {dates[2]}"
        )
    return f"another number: {theirs.shape} against {ours.shape}"


def missed(report: Report, timers: int, gap: int) -> None:
    """Next, latest and skipped ones: of many timers at once, and of one after a long gap."""
    made = Timers(timers, "PT1H")
    table = our_series(made, 999_999_999)
    # After the last start, which lies in the same January.
    start, now = table.start, made.low + (31 * 24 + gap) * HOUR + HOUR // 3
    before = made.low - 1
    floor = peers.floor_division(start, HOUR, now)
    assert_same(floor()[1], table.latest(now))
    months = our_series(Timers(timers, "P1M"), 999_999_999)
    report.rows += race(
        f"Next, latest and skipped of {timers:,} timers, a timer",
        {
            "numpy floor division, PT1H": Contender(floor, timers, "equal"),
            "seams-lab, PT1H": Contender(lambda: answers(table, before, now), timers),
            "seams-lab, P1M": Contender(lambda: answers(months, before, now), timers),
        },
        rounds=15,
    )
    one = made.head(1)
    single = table[:1]
    now = int(single.start[0]) + gap * HOUR - HOUR // 2  # `gap` firings are due
    wanted = (int(single.latest(now)[0]), int(single.skipped(before, now)[0]))
    ask = partial(answers, single, before, now)
    runs = {"seams-lab": Contender(ask, 1, "next, latest, skipped")}
    for name, make in peers.LATEST.items():
        run = make(one, now)
        latest, skipped = run()
        runs[name] = Contender(run, 1, same(
            np.array([[peers.to_micros(latest), skipped]]), np.array([wanted])))  # fmt: skip
    part = f"One timer with {gap:,} missed firings: the newest, how many skipped"
    report.rows += race(part, runs)


def answers(table: Series, before: int, now: int) -> tuple[np.ndarray, ...]:
    """What the missed rule asks: next, latest, skipped."""
    return table.next(now), table.latest(now), table.skipped(before, now)


def assert_same(theirs: np.ndarray, ours: np.ndarray) -> None:
    """A race between unequal answers says nothing."""
    if not np.array_equal(theirs, ours):
        raise AssertionError("the answers differ")


def counted(report: Report, timers: int, firings: int) -> None:
    """Counts per bin: closed form against making the due times and sorting them into bins."""
    made = Timers(timers, "PT1H")
    table = our_series(made, firings)
    low = made.low
    width = 6 * HOUR
    bins = firings // 6 + 31 * 4 + 1
    edges = low + width * np.arange(bins + 1)
    first, counts = table.window(low, LAST_INSTANT)

    def made_and_sorted() -> np.ndarray:
        due = table.expand(first, counts)[1]
        return np.bincount((due - low) // width, minlength=bins)

    def closed_form() -> np.ndarray:
        counts: np.ndarray = table.count_per_bin(edges).sum(axis=1)
        return counts

    assert_same(made_and_sorted(), closed_form())
    n = timers * firings
    report.rows += race(
        f"{n:,} firings counted in {bins:,} bins",
        {
            "seams-lab, counts in closed form": Contender(closed_form, 1, "equal"),
            "seams-lab, due times made, then numpy bincount": Contender(made_and_sorted, 1),
        },
    )
