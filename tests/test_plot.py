"""Pictures: what is drawn is computed by pure functions and tested as data, not as pixels."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text
from PIL import Image

from seams_lab import plot
from seams_lab.errors import UnusableInput
from seams_lab.picture import Picture
from seams_lab.plot import layout, names, style, times
from seams_lab.plot.bars import bunching_of
from seams_lab.plot.heat import WEEKDAYS, compact, load_of
from seams_lab.plot.layers import layers_of
from seams_lab.plot.matrix import matrix_of
from seams_lab.plot.strip import MOST_TICKS, strip_of

NOVEMBER = {"start": "2026-11-01T00:00:00Z", "end": "2026-12-01T00:00:00Z"}
HOUR, DAY = times.HOUR, times.DAY
ODD = [
    "$x$",
    r"$\frac{",
    "a_b^c",
    "<b>&amp;",
    "naïve 中文 🕑",
    "x" * 300,
    "tab\there\n",
    "%s {}",
    "",
]


def due_of(firings: dict[str, list[str]], process: str = "p") -> pd.DataFrame:
    """Make the table of due times; all timers of one process."""
    rows = [
        (event, process, k, pd.Timestamp(due))
        for event, instants in firings.items()
        for k, due in enumerate(instants)
    ]
    table = pd.DataFrame(rows, columns=["event", "process", "k", "due"])
    table["due"] = pd.to_datetime(table["due"], utc=True).astype("datetime64[us, UTC]")
    return table.astype({"event": "category", "process": "category"})


def due_every(event: str, freq: str, process: str = "p") -> pd.DataFrame:
    """Make the due times of one timer at a fixed distance, all through November."""
    instants = pd.date_range(**NOVEMBER, freq=freq, inclusive="left").as_unit("us")
    table = pd.DataFrame({"event": event, "process": process, "due": instants})
    return table.assign(k=range(len(table)))


def many_due(timers: int) -> pd.DataFrame:
    """Make due times: every 20th timer hourly, the others daily."""
    if not timers:
        return due_of({})
    parts = [due_every(f"timer_{i}", "1h" if i % 20 == 0 else "1D") for i in range(timers)]
    return pd.concat(parts).astype({"event": "category", "process": "category"})


def many_effects(timers: int, nodes: int = 7) -> pd.DataFrame:
    """Make a matrix with every effect in it, once there are a few rows."""
    words = ["untouched", "untouched", "degraded", "stops"]
    cells = [[words[(i * 5 + j * 3) % 4] for j in range(nodes)] for i in range(timers)]
    for row in cells[2::50]:
        row[:] = ["unplaced"] * nodes
    index = pd.MultiIndex.from_tuples(
        [(f"process_{i // 3}", f"timer_{i}") for i in range(timers)], names=["process", "event"]
    )
    return pd.DataFrame(cells, index=index, columns=[f"node_{j}" for j in range(nodes)])


def many_paths(timers: int) -> pd.DataFrame:
    """Make paths: each container on two of seven nodes and on the store of ``db``."""
    rows = []
    for i in range(timers):
        c = i % 11
        on = sorted({f"node_{c % 7}", f"node_{c * 2 % 7}"})
        effect = {1: "stops", 2: "degraded"}.get(len(on)) if "node_0" in on else "untouched"
        names = (f"container_{c}", f"process_{i // 2}", f"timer_{i}", effect)
        rows += [(node, "runs", *names) for node in on] + [("db", "stores", *names)]
    return pd.DataFrame(rows, columns=["node", "role", "container", "process", "event", "effect"])


def many_counts(bins: int) -> pd.Series:
    """Make counts per hour."""
    index = pd.date_range("2026-11-01", periods=bins, freq="1h", tz="UTC")
    return pd.Series(np.arange(bins) * 7 % 11, index=index, dtype="int64")


def load_table(cells: dict[tuple[str, int], int]) -> pd.DataFrame:
    """Make the load table; cells that are not named are 0."""
    table = pd.DataFrame(0, index=list(WEEKDAYS), columns=range(24))
    for (day, hour), count in cells.items():
        table.loc[day, hour] = count
    return table


DRAWINGS: dict[str, Callable[[int], Picture]] = {
    "due_strip": lambda n: plot.due_strip(many_due(n), **NOVEMBER),
    "load": lambda n: plot.load(load_table({(WEEKDAYS[i % 7], i % 24): i + 1 for i in range(n)})),
    "bunching": lambda n: plot.bunching(many_counts(n)),
    "impact_matrix": lambda n: plot.impact_matrix(many_effects(n, min(n, 40))),
    "paths": lambda n: plot.paths(many_paths(n), dead=["node_0"]),
}


@pytest.mark.parametrize("rows", [0, 1, 3, 60, 500])
@pytest.mark.parametrize("kind", DRAWINGS)
def test_each_picture_is_a_small_png_with_caption_and_alternative(kind: str, rows: int) -> None:
    picture = DRAWINGS[kind](rows)
    assert picture.mime == "image/png"
    assert len(picture.data) < 200_000
    with Image.open(io.BytesIO(picture.data)) as image:
        image.load()
        width, height = image.size
        corner = image.convert("RGB").getpixel((1, 1))
    assert 500 < width < 1500
    assert 100 < height < 2200
    assert min(corner) >= 250, "a white ground, whatever the theme of the notebook"
    assert picture.caption.endswith(".")
    assert "\n" not in picture.caption
    assert len(picture.caption) < 400
    assert picture.alt


@pytest.mark.parametrize("kind", DRAWINGS)
def test_the_same_table_gives_the_same_bytes(kind: str) -> None:
    assert DRAWINGS[kind](5) == DRAWINGS[kind](5)


@pytest.mark.parametrize("kind", DRAWINGS)
def test_no_style_of_the_session_shows_or_is_changed(kind: str) -> None:
    plain = DRAWINGS[kind](3)
    dark = {"figure.facecolor": "black", "axes.facecolor": "black", "text.color": "white"}
    large = {"font.size": 30, "lines.linewidth": 9, "axes.linewidth": 9, "axes.grid": True}
    with mpl.rc_context(dark | large):
        before = dict(mpl.rcParams)
        assert DRAWINGS[kind](3).data == plain.data
        assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", DRAWINGS)
def test_a_picture_with_nothing_to_show_says_so(kind: str) -> None:
    picture = DRAWINGS[kind](0)
    assert picture.caption == picture.alt
    assert picture.caption.startswith("No ")


def test_the_palette_moves_no_colour_far_enough_to_see() -> None:
    with style.canvas(4, 3) as figure:
        axes = figure.subplots()
        axes.imshow(np.arange(400).reshape(20, 20), cmap="cividis")
        axes.set_title("a title", color=style.RED)
        picture = style.painted(figure, caption="c", alt="a")
        exact = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    with Image.open(io.BytesIO(picture.data)) as image:
        painted = np.asarray(image.convert("RGB")).astype(int)
    assert painted.shape == exact.shape
    assert np.abs(painted - exact).max() <= 12


def odd_pictures() -> dict[str, Callable[[], Picture]]:
    """Return a picture of each kind whose names hold what could be taken for markup."""
    instants = ["2026-11-09T08:00:00Z"]
    matrix = pd.DataFrame("stops", index=ODD, columns=ODD)
    paths = pd.DataFrame(
        [(n, "runs", n, n, n, "stops") for n in ODD],
        columns=["node", "role", "container", "process", "event", "effect"],
    )
    title = "".join(ODD)
    return {
        "due_strip": lambda: plot.due_strip(due_of(dict.fromkeys(ODD, instants)), title=title),
        "load": lambda: plot.load(load_table({("Mon", 1): 1}), title=title),
        "bunching": lambda: plot.bunching(many_counts(3), title=title),
        "impact_matrix": lambda: plot.impact_matrix(matrix, title=title),
        "paths": lambda: plot.paths(paths, dead=ODD[:1], title=title),
    }


@pytest.mark.parametrize("kind", DRAWINGS)
def test_odd_names_are_drawn_letter_by_letter(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = []
    painted = style.painted
    for module in ("bars", "heat", "layers", "matrix", "strip"):
        monkeypatch.setattr(
            f"seams_lab.plot.{module}.painted",
            lambda figure, **words: figures.append(figure) or painted(figure, **words),
        )
    odd_pictures()[kind]()  # a formula that matplotlib cannot read would raise
    texts = [text for text in figures[0].findobj(Text) if text.get_text()]
    assert texts
    assert not any(text.get_parse_math() for text in texts)
    drawn = {text.get_text() for text in texts}
    if kind in ("due_strip", "impact_matrix", "paths"):
        shown = {"$x$", r"$\frac{", "a_b^c", "<b>&amp;", "naïve □□ □", "tab here", "%s {}"}
        assert shown <= drawn
        assert any(text.startswith("xxx") and "…" in text for text in drawn)


# --- names ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("abc", 3, "abc"),
        ("abcdef", 5, "ab…ef"),
        ("abcdef", 4, "ab…f"),
        ("month_end_report", 9, "mont…port"),
    ],
)
def test_the_middle_of_a_long_name_is_cut(text: str, limit: int, short: str) -> None:
    assert names.shorten(text, limit) == short


@given(st.text(max_size=80), st.floats(0.5, 4), st.sampled_from([8.0, 9.0, 12.0]))
def test_a_fitted_name_is_no_wider_than_its_place(text: str, width: float, size: float) -> None:
    fitted = names.fit(text, width, size)
    assert names.text_width(fitted, size) <= width
    whole = names.drawable(text)
    assert fitted == whole or (
        names.text_width(whole, size) > width
        and whole.startswith(fitted.partition("…")[0])
        and len(fitted) < len(whole)
    )


@given(st.lists(st.text("ab", max_size=6), unique=True, min_size=2, max_size=12))
def test_labels_never_read_alike(middles: list[str]) -> None:
    many = [f"{'start_' * 4}{middle}{'_event' * 4}" for middle in middles]
    labels = names.fitted(many, 1.2, 9)
    assert len(set(labels)) == len(many)
    assert all(names.text_width(label, 9) <= 1.2 for label in labels)


@pytest.mark.parametrize(
    ("given_names", "short"),
    [
        (["http://x.org/a#node1", "http://x.org/a#node2"], ["node1", "node2"]),
        (["http://x.org/a/", "b"], ["a", "b"]),
        (["http://x.org/a#n", "http://x.org/b#n"], ["http://x.org/a#n", "http://x.org/b#n"]),
        (["a/b", "c#d", ""], ["a/b", "c#d", "(no name)"]),
    ],
)
def test_an_iri_is_shown_by_its_last_part(given_names: list[str], short: list[str]) -> None:
    assert names.short_names(given_names) == short


@pytest.mark.parametrize(
    ("timers", "shown"),
    [
        ([("p", "a"), ("q", "b")], ["a", "b"]),
        ([("p", "a"), ("q", "a"), ("q", "b")], ["a · p", "a · q", "b"]),
        ([("u://x/p", "u://x/a"), ("u://y/p", "u://y/a")],
         ["u://x/a · u://x/p", "u://y/a · u://y/p"]),
    ],
)  # fmt: skip
def test_the_process_is_named_where_events_read_alike(
    timers: list[tuple[str, str]], shown: list[str]
) -> None:
    assert names.timer_names([e for _, e in timers], [p for p, _ in timers]) == shown


# --- times ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (0, "1970-01-01 00:00 UTC"),
        (61_000_000, "1970-01-01 00:01:01 UTC"),
        (1_500_000, "1970-01-01 00:00:01.5 UTC"),
        (-1, "1969-12-31 23:59:59.999999 UTC"),
        (253_402_300_740_000_000, "9999-12-31 23:59 UTC"),
    ],
)
def test_an_instant_is_written_as_short_as_it_is_exact(instant: int, text: str) -> None:
    assert times.stamp(instant) == text


@pytest.mark.parametrize(
    ("span", "words", "rate"),
    [
        (DAY, "1 d", "per day"), (3 * HOUR, "3 h", "per 3 h"), (HOUR, "1 h", "per hour"),
        (90 * times.MINUTE, "90 min", "per 90 min"), (1500, "1,500 µs", "per 1,500 µs"),
    ],
)  # fmt: skip
def test_a_span_is_written_in_its_largest_whole_unit(span: int, words: str, rate: str) -> None:
    assert (times.in_words(span), times.per(span)) == (words, rate)


@given(st.integers(1, 9999 * 365 * DAY), st.integers(40, 400))
def test_a_bin_width_is_the_least_handy_one_that_is_wide_enough(span: int, most: int) -> None:
    step = times.step_for(span, most)
    handy = sorted(times._STEPS)
    assert list(times._STEPS) == handy
    if span <= handy[-1] * most:
        assert step == min(s for s in handy if s * most >= span)


# --- due strip -----------------------------------------------------------------------------


def test_a_strip_has_a_row_per_timer_the_earliest_first() -> None:
    often = ["2026-11-19T08:00:00Z", "2026-11-20T08:00:00Z"]
    strip = strip_of(due_of({"often": often, "early": ["2026-11-09T08:00:00Z"]}), **NOVEMBER)
    assert strip is not None
    assert [(row.name, row.count, row.bins) for row in strip.rows] == [
        ("early", 1, None),
        ("often", 2, None),
    ]
    assert strip.caption() == (
        "2 timers fire 3 times from 2026-11-01 00:00 to 2026-12-01 00:00 UTC; busiest: often (2)."
    )
    assert strip.alt().splitlines()[1:] == [
        "often: 2 firings, first 2026-11-19 08:00 UTC, last 2026-11-20 08:00 UTC.",
        "early: 1 firing, at 2026-11-09 08:00 UTC.",
    ]


@pytest.mark.parametrize(
    ("window", "kept"),
    [
        ({}, [0, 1, 2]),
        ({"start": "2026-11-02T00:00:00Z"}, [1, 2]),
        ({"end": "2026-11-03T00:00:00Z"}, [0, 1]),
        ({"start": "2026-11-02T00:00:00Z", "end": "2026-11-03T00:00:00Z"}, [1]),
    ],
)
def test_the_window_of_a_strip_is_half_open(window: dict[str, str], kept: list[int]) -> None:
    days = ["2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z"]
    strip = strip_of(due_of({"e": days}), **window)
    assert strip is not None
    wanted = times.to_instants([pd.Timestamp(days[i]) for i in kept], "t")
    assert strip.rows[0].ticks.tolist() == wanted.tolist()


@pytest.mark.parametrize(("firings", "dense"), [(MOST_TICKS, False), (MOST_TICKS + 1, True)])
def test_more_ticks_than_fit_become_a_band(firings: int, dense: bool) -> None:
    instants = pd.date_range("2026-11-01", periods=firings, freq="1h", tz="UTC")
    strip = strip_of(due_of({"e": [t.isoformat() for t in instants]}))
    assert strip is not None
    assert (strip.rows[0].bins is not None) == dense
    assert ("band" in strip.caption()) == dense


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 40 * DAY), min_size=MOST_TICKS + 1, max_size=MOST_TICKS + 40),
    st.sampled_from([1, 1000, times.MINUTE, HOUR]),
)
def test_a_band_counts_each_firing_once_in_its_bin(offsets: list[int], unit: int) -> None:
    instants = np.array(offsets, dtype=np.int64) // unit * unit
    due = pd.DataFrame({"event": "e", "process": "p",
                        "due": pd.to_datetime(instants, unit="us", utc=True)})  # fmt: skip
    strip = strip_of(due)
    assert strip is not None
    bins = strip.rows[0].bins
    assert bins is not None
    assert len(bins) == len(strip.edges) - 1 <= 252
    assert bins.tolist() == np.histogram(instants, strip.edges)[0].tolist()
    assert bins.sum() == len(instants)


def test_a_band_of_an_even_timer_is_even() -> None:
    strip = strip_of(due_every("e", "1h"), **NOVEMBER)
    assert strip is not None
    assert strip.step == 3 * HOUR
    bins = strip.rows[0].bins
    assert bins is not None
    assert set(bins[:240]) == {3}
    assert "firings per 3 h, at most 3" in strip.caption()


def test_beyond_sixty_timers_the_busiest_are_drawn_and_the_rest_counted() -> None:
    strip = strip_of(many_due(500), **NOVEMBER)
    assert strip is not None
    assert len(strip.rows) == 60
    assert sum(row.count == 720 for row in strip.rows) == 25  # all the hourly ones
    assert strip.caption().endswith("440 less busy timers left off.")
    assert f"500 timers fire {25 * 720 + 475 * 30:,} times" in strip.caption()
    assert f"488 more timers: {13 * 720 + 475 * 30:,} firings." in strip.alt()


def test_an_event_id_that_two_processes_share_is_two_timers() -> None:
    due = pd.concat([due_every("e", "1D", "p"), due_every("e", "7D", "q")])
    strip = strip_of(due)
    assert strip is not None
    assert {row.name: row.count for row in strip.rows} == {"e · p": 30, "e · q": 5}


def test_what_the_cap_of_due_times_cut_is_said() -> None:
    due = due_every("e", "1D")
    due.attrs["left_off"] = {"e": 12, "another": 99}
    assert "12 later firings cut from the table by its cap" in plot.due_strip(due).caption


@pytest.mark.parametrize("year", ["0001-01-01", "9999-12-31"])
def test_the_ends_of_the_calendar_can_be_drawn(year: str) -> None:
    instant = np.datetime64(f"{year}T23:00:00", "us")
    due = pd.DataFrame({"event": ["e"], "process": ["p"], "due": pd.DatetimeIndex([instant])})
    assert f"{year} 23:00 UTC" in plot.due_strip(due).alt


@pytest.mark.parametrize(
    ("due", "window", "said"),
    [
        (42, {}, "type int"),
        (pd.DataFrame({"event": ["e"]}), {}, "no column process, due"),
        (pd.DataFrame({"event": ["e"], "process": ["p"], "due": ["soon"]}), {}, "datetimes in UTC"),
        (due_of({}), {"start": "yesterday"}, "start"),
        (due_of({}), {"end": pd.NaT}, "end"),
    ],
)
def test_a_table_or_window_that_is_none_is_refused(
    due: pd.DataFrame, window: dict[str, str], said: str
) -> None:
    with pytest.raises(UnusableInput, match=said):
        plot.due_strip(due, **window)


# --- load and bunching ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "caption"),
    [
        ({("Mon", 8): 412, ("Tue", 9): 818}, "Tuesday 09:00-10:00 UTC: 818 of 1,230 firings."),
        ({("Sun", 23): 1}, "Sunday 23:00-24:00 UTC: 1 of 1 firing."),
        ({("Mon", 8): 2, ("Wed", 0): 2, ("Fri", 1): 1},
         "Monday 08:00-09:00 UTC: 2 of 5 firings; 1 other hour of the week just as busy."),
    ],
)  # fmt: skip
def test_the_peak_hour_is_stated(cells: dict[tuple[str, int], int], caption: str) -> None:
    assert plot.load(load_table(cells)).caption == caption


def test_load_in_any_order_and_with_gaps_is_put_in_place() -> None:
    table = pd.DataFrame([[1, 2], [3, 4]], index=["Sun", "Mon"], columns=[23, 5])
    drawn = load_of(table)
    assert drawn.counts[6, 23] == 1
    assert drawn.counts[6, 5] == 2
    assert drawn.counts[0, 23] == 3
    assert drawn.counts[0, 5] == 4
    assert drawn.total == 10
    assert "By weekday: Mon 7, Tue 0, Wed 0, Thu 0, Fri 0, Sat 0, Sun 3." in drawn.alt()
    assert "By hour: 05h 6, 23h 4." in drawn.alt()
    assert "164 of 168 hours of the week have none" in drawn.alt()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pd.DataFrame([[1]], index=["Monday"], columns=[0]), "'Monday'"),
        (pd.DataFrame([[1]], index=["Mon"], columns=[24]), "24"),
        (pd.DataFrame([[1, 2]], index=["Mon"], columns=[1, 1]), "twice"),
        ([1], "type list"),
    ],
)
def test_a_load_that_is_none_is_refused(table: pd.DataFrame, said: str) -> None:
    with pytest.raises(UnusableInput, match=said):
        plot.load(table)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (1999, "1.9k"), (9_999, "9.9k"), (10_000, "10k"),
     (999_999, "999k"), (1_000_000, "1.0M"), (12_345_678, "12M"), (2 * 10**9, "2.0G")],
)  # fmt: skip
def test_a_count_fits_its_cell(number: int, text: str) -> None:
    assert compact(number) == text


def test_bunching_states_peak_and_mean() -> None:
    counts = pd.Series([1, 0, 6, 1], pd.date_range("2026-11-01", periods=4, freq="1h", tz="UTC"))
    picture = plot.bunching(counts)
    assert (
        picture.caption == "Peak 6 firings per hour at 2026-11-01 02:00 UTC, 3 times the mean of 2."
    )
    assert "8 firings in 4 bins of 1 h, 2026-11-01 00:00 to 2026-11-01 04:00 UTC." in picture.alt
    assert "1 bin without a firing." in picture.alt


@pytest.mark.parametrize(
    ("bins", "freq", "width"),
    [(1, "1D", DAY), (1, "15min", 15 * times.MINUTE), (3, "6h", 6 * HOUR)],
)
def test_the_width_of_a_bin_is_read_from_the_index(bins: int, freq: str, width: int) -> None:
    index = pd.date_range("2026-11-01", periods=bins, freq=freq, tz="UTC")
    drawn = bunching_of(pd.Series(1, index))
    assert drawn is not None
    assert drawn.width == width
    assert drawn.edges()[-1] - drawn.edges()[0] == bins * width


@pytest.mark.parametrize("bins", [700, 701, 1400, 8760])
def test_no_peak_is_lost_where_bins_share_a_pixel(bins: int) -> None:
    counts = many_counts(bins)
    counts.iloc[bins // 2] = 99
    drawn = bunching_of(counts)
    assert drawn is not None
    assert len(drawn.heights) <= 700
    assert len(drawn.edges()) == len(drawn.heights) + 1
    assert drawn.heights[bins // 2 // drawn.group] == 99
    assert drawn.group == math.ceil(bins / 700)
    assert ("highest of" in drawn.caption()) == (bins > 700)


@pytest.mark.parametrize(
    "counts",
    [pd.Series([1, 2]), [1], pd.Series([1, 1], pd.to_datetime(["2026-01-02", "2026-01-01"]))],
)
def test_counts_that_are_none_are_refused(counts: pd.Series) -> None:
    with pytest.raises(UnusableInput, match="counts"):
        plot.bunching(counts)


# --- impact matrix -------------------------------------------------------------------------


def effects(rows: dict[str, str], nodes: str = "abc") -> pd.DataFrame:
    """Make a matrix from letters: ``.`` untouched, ``D``, ``S``, ``?``."""
    word = {".": "untouched", "D": "degraded", "S": "stops", "?": "unplaced"}
    cells = [[word[letter] for letter in letters] for letters in rows.values()]
    return pd.DataFrame(cells, index=list(rows), columns=list(nodes))


@pytest.mark.parametrize(
    ("rows", "caption"),
    [
        ({"t": "S.D", "u": "SS."}, "Losing a stops most: 2 of 2 timers."),
        ({"t": "S.D", "u": ".S."}, "Losing a or b stops most: 1 of 2 timers."),
        ({"t": "..D"}, "No single node's loss stops a timer (1 timer)."),
        ({"t": ".S.", "u": "???"},
         "Losing b stops most: 1 of 2 timers; 1 timer runs nowhere (unplaced)."),
    ],
)  # fmt: skip
def test_the_node_whose_loss_stops_most_is_named(rows: dict[str, str], caption: str) -> None:
    assert plot.impact_matrix(effects(rows)).caption == caption


def test_sums_per_timer_and_per_node() -> None:
    drawn = matrix_of(effects({"t": "SDD", "u": "SS.", "v": "???"}))
    assert drawn is not None
    assert drawn.row_sums() == ["1 S  2 D", "2 S  0 D", "unplaced"]
    assert drawn.stopped == [2, 1, 0]
    assert drawn.alt().splitlines()[1:] == [
        "a: stops 2 (t and u), degrades 0.",
        "b: stops 1 (u), degrades 1.",
        "c: stops 0, degrades 1.",
    ]


def test_of_a_large_matrix_the_most_affected_part_is_drawn_in_the_order_given() -> None:
    calm = {f"calm_{i}": "." * 40 for i in range(70)}
    rows = {**calm, "hit": "." * 39 + "S", "nowhere": "?" * 40, "half": "D" + "." * 39}
    drawn = matrix_of(effects(rows, nodes="".join(map(chr, range(200, 240)))))
    assert drawn is not None
    assert len(drawn.rows) == 60
    assert [drawn.timers[i] for i in drawn.rows[-3:]] == ["hit", "nowhere", "half"]
    assert len(drawn.columns) == 30
    assert (drawn.columns[0], drawn.columns[-1]) == (0, 39)
    assert "left off: 13 less affected timers and 10 less harmful nodes." in drawn.caption()


def test_one_stop_weighs_more_than_many_degraded() -> None:
    rows = {f"half_{i}": "DDDDDD" for i in range(60)}
    drawn = matrix_of(effects({**rows, "hit": "....S."}, nodes="abcdef"))
    assert drawn is not None
    assert drawn.timers[drawn.rows[-1]] == "hit"


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (pd.DataFrame({"a": ["dies"]}), "'dies'"),
        (pd.DataFrame([["stops", "stops"]], columns=["a", "a"]), "a node twice"),
        ("stops", "type str"),
    ],
)
def test_a_matrix_that_is_none_is_refused(matrix: pd.DataFrame, said: str) -> None:
    with pytest.raises(UnusableInput, match=said):
        plot.impact_matrix(matrix)


def test_effects_differ_without_colour() -> None:
    looks = [(e.letter, e.hatch) for e in style.EFFECTS.values()]
    assert len({letter for letter, _ in looks}) == len(looks) == 4
    grey = {
        w: np.dot(mpl.colors.to_rgb(e.colour), (0.3, 0.59, 0.11)) for w, e in style.EFFECTS.items()
    }
    unhatched = [grey[w] for w, e in style.EFFECTS.items() if not e.hatch]
    assert all(abs(a - b) > 0.2 for a, b in itertools.combinations(unhatched, 2))


# --- paths ---------------------------------------------------------------------------------


def links(*rows: str) -> pd.DataFrame:
    """Make paths from texts: ``node role container process event effect``, ``-`` for none."""
    cells = [[None if cell == "-" else cell for cell in row.split()] for row in rows]
    return pd.DataFrame(cells, columns=["node", "role", "container", "process", "event", "effect"])


EXPENSE = (
    "a runs api approve reminder degraded",
    "b runs api approve reminder degraded",
    "db stores api approve reminder degraded",
    "b runs jobs close month_end stops",
    "db stores jobs close month_end stops",
)


def test_paths_have_four_columns_and_mark_what_is_lost() -> None:
    drawn = layers_of(links(*EXPENSE), dead=["b"])
    assert drawn is not None
    assert [sorted(column) for column in drawn.columns] == [
        ["a", "b", "db"], ["api", "jobs"], ["approve", "close"], ["month_end", "reminder"],
    ]  # fmt: skip
    assert drawn.states[0] == {"a": "untouched", "b": "stops", "db": "untouched"}
    assert drawn.states[1] == {"api": "degraded", "jobs": "stops"}
    assert drawn.states[2] == {"approve": "degraded", "close": "stops"}
    assert drawn.states[3] == {"reminder": "degraded", "month_end": "stops"}
    assert {(e.source, e.target, e.stores, e.state) for e in drawn.edges} == {
        ("a", "api", False, "untouched"), ("b", "api", False, "stops"),
        ("b", "jobs", False, "stops"), ("db", "api", True, "untouched"),
        ("db", "jobs", True, "untouched"), ("api", "approve", False, "degraded"),
        ("jobs", "close", False, "stops"), ("approve", "reminder", False, "degraded"),
        ("close", "month_end", False, "stops"),
    }  # fmt: skip
    assert drawn.caption() == "With b lost, 1 of 2 timers stops, 1 degraded."
    assert drawn.alt().splitlines()[1:] == [
        "Stops: month_end (b and db (store) > jobs > close).",
        "Degraded: reminder (a, b and db (store) > api > approve).",
    ]


@pytest.mark.parametrize(
    ("lost", "dead", "crossed", "caption"),
    [
        ((), (), (), "1 of 2 timers stops, 1 degraded."),
        ((), ("host",), ("host",), "With host lost, 1 of 2 timers stops, 1 degraded."),
        (("b",), ("host",), ("host", "b"), "With host lost, 1 of 2 timers stops, 1 degraded."),
        (("b",), (), ("b",), "With b lost, 1 of 2 timers stops, 1 degraded."),
    ],
)
def test_a_node_is_lost_by_name_or_by_the_table(
    lost: tuple[str, ...], dead: tuple[str, ...], crossed: tuple[str, ...], caption: str
) -> None:
    table = links(*EXPENSE)
    if lost:
        table["lost"] = table["node"].isin(lost)
    drawn = layers_of(table, dead)
    assert drawn is not None
    assert drawn.dead == crossed
    assert {n for n, state in drawn.states[0].items() if state == "stops"} == set(crossed)
    assert drawn.caption() == caption


@pytest.mark.parametrize(
    ("effects", "shared"),
    [
        (["stops", "stops"], "stops"),
        (["stops", "untouched"], "degraded"),
        (["stops", "degraded"], "degraded"),
        (["degraded", "untouched"], "degraded"),
        (["unplaced", "untouched"], "untouched"),
        (["unplaced", "unplaced"], "unplaced"),
    ],
)
def test_what_several_timers_hang_on_is_lost_only_if_all_stop(
    effects: list[str], shared: str
) -> None:
    drawn = layers_of(links(*(f"a runs c p t{i} {word}" for i, word in enumerate(effects))))
    assert drawn is not None
    assert drawn.states[1:3] == ({"c": shared}, {"p": shared})
    assert [e.state for e in drawn.edges if e.column == 1] == [shared]


def test_a_timer_that_is_placed_nowhere_is_still_drawn() -> None:
    drawn = layers_of(links("- runs api p t unplaced", "- runs - q u unplaced"))
    assert drawn is not None
    assert drawn.columns[0] == ()
    assert drawn.states[3] == {"t": "unplaced", "u": "unplaced"}
    assert "0 of 2 timers stop, 2 unplaced" in drawn.caption()
    assert "t (no node > api > p); u (no node > no container > q)" in drawn.alt()
    assert plot.paths(links("- runs - q u unplaced")).data


def test_beyond_sixty_timers_only_the_affected_are_drawn() -> None:
    calm = [f"a runs c p{i} calm_{i} untouched" for i in range(80)]
    hit = [f"b runs d q hit_{i} stops" for i in range(3)]
    drawn = layers_of(links(*calm, *hit), dead=["b"])
    assert drawn is not None
    assert sorted(drawn.columns[3]) == ["hit_0", "hit_1", "hit_2"]
    assert drawn.columns[0] == ("b",)
    assert drawn.caption() == "With b lost, 3 of 83 timers stop; 80 untouched timers left off."


def test_beyond_sixty_affected_timers_the_worst_are_drawn() -> None:
    half = [f"a runs c p half_{i} degraded" for i in range(50)]
    hit = [f"a runs d q hit_{i} stops" for i in range(50)]
    drawn = layers_of(links(*half, *hit), dead=["a"])
    assert drawn is not None
    assert sum(name.startswith("hit") for name in drawn.columns[3]) == 50
    assert len(drawn.columns[3]) == 60
    assert drawn.caption().endswith("50 degraded; 40 degraded timers left off.")


def test_beyond_sixty_nodes_the_lost_stay() -> None:
    drawn = layers_of(links(*(f"n{i} runs c p t degraded" for i in range(100))), dead=["n99"])
    assert drawn is not None
    assert len(drawn.columns[0]) == 60
    assert "n99" in drawn.columns[0]
    assert drawn.caption().endswith("40 nodes left off.")


def test_paths_with_an_unknown_effect_are_refused() -> None:
    with pytest.raises(UnusableInput, match="'dies'"):
        plot.paths(links("a runs c p t dies"))


# --- layout --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("joined", "count"),
    [
        ([("a", "x"), ("b", "y")], 0),
        ([("a", "y"), ("b", "x")], 1),
        ([("a", "x"), ("a", "y"), ("b", "y")], 0),
        ([("a", "z"), ("b", "y"), ("c", "x")], 3),
        ([], 0),
    ],
)
def test_crossings_are_counted(joined: list[tuple[str, str]], count: int) -> None:
    assert layout.crossings("abc", "xyz", joined) == count


links_of_four = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz")), unique=True, max_size=9
)


@given(links_of_four)
def test_the_order_keeps_the_boxes_and_adds_no_crossing(joined: list[tuple[str, str]]) -> None:
    before = [list("abcd"), list("wxyz")]
    after = layout.order(before, [joined])
    assert [sorted(column) for column in after] == [sorted(column) for column in before]
    assert layout.all_crossings(after, [joined]) <= layout.all_crossings(before, [joined])


@given(st.permutations(range(9)), st.permutations(range(3)))
def test_a_tree_is_drawn_without_a_crossing(leaves: list[int], roots: list[int]) -> None:
    joined = [(f"r{i % 3}", f"l{i}") for i in range(9)]
    columns = [[f"r{i}" for i in roots], [f"l{i}" for i in leaves]]
    assert layout.all_crossings(layout.order(columns, [joined]), [joined]) == 0


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=4), st.integers(1, 5))
def test_boxes_are_spread_as_near_their_wish_as_the_gap_allows(wanted: list[int], gap: int) -> None:
    places = layout.spread(wanted, gap)
    assert all(b - a >= gap - 1e-9 for a, b in itertools.pairwise(places))
    cost = sum((p - w) ** 2 for p, w in zip(places, wanted, strict=True))
    # no feasible step in any direction is better, and the problem is convex
    for step in itertools.product((-1e-3, 0, 1e-3), repeat=len(wanted)):
        moved = [p + s for p, s in zip(places, step, strict=True)]
        if all(b - a >= gap for a, b in itertools.pairwise(moved)):
            assert sum((p - w) ** 2 for p, w in zip(moved, wanted, strict=True)) >= cost - 1e-9


@given(links_of_four, links_of_four)
def test_placed_boxes_keep_order_and_distance(
    first: list[tuple[str, str]], second: list[tuple[str, str]]
) -> None:
    turned = [(b, a) for a, b in second]
    columns = [list("abcd"), list("wxyz"), list("abcd")]
    for column, heights in zip(columns, layout.place(columns, [first, turned], 0.5), strict=True):
        at = [heights[name] for name in column]
        assert all(b - a >= 0.5 - 1e-9 for a, b in itertools.pairwise(at))
        assert min(at) >= -1e-9
        assert max(at) <= 1.5 + 1e-9
