"""Where boxes of a layered picture go: an order with few crossings, and even distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

Link = tuple[str, str]


def crossings(left: Sequence[str], right: Sequence[str], links: Sequence[Link]) -> int:
    """Return how many pairs of *links* between two ordered columns cross."""
    at_left = {name: i for i, name in enumerate(left)}
    at_right = {name: i for i, name in enumerate(right)}
    ends = np.array([(at_left[a], at_right[b]) for a, b in links], dtype=np.int64).reshape(-1, 2)
    below = ends[:, None, 0] < ends[None, :, 0]
    return int((below & (ends[:, None, 1] > ends[None, :, 1])).sum())


def all_crossings(columns: Sequence[Sequence[str]], links: Sequence[Sequence[Link]]) -> int:
    """Return the crossings of all neighbouring columns."""
    return sum(crossings(a, b, ab) for (a, b), ab in zip(pairwise(columns), links, strict=True))


def order(
    columns: Sequence[Sequence[str]], links: Sequence[Sequence[Link]], sweeps: int = 8
) -> list[list[str]]:
    """Order each column so that few links cross (the barycenter sweep of Sugiyama et al.).

    Parameters
    ----------
    columns : sequence of sequences of str
        The names in each column, unique within it.
    links : sequence of sequences of pairs
        ``links[i]`` joins ``columns[i]`` to ``columns[i + 1]``.
    sweeps : int
        How often to go right and back.

    Returns
    -------
    list of lists
        The best order seen; never more crossings than the order given.
    """
    now = [list(column) for column in columns]
    best, fewest = [list(column) for column in now], all_crossings(now, links)
    for _ in range(sweeps):
        for i in range(1, len(now)):
            now[i] = _by_neighbours(now[i], now[i - 1], [(b, a) for a, b in links[i - 1]])
        for i in range(len(now) - 2, -1, -1):
            now[i] = _by_neighbours(now[i], now[i + 1], links[i])
        count = all_crossings(now, links)
        if count < fewest:
            best, fewest = [list(column) for column in now], count
        if not fewest:
            break
    return best


def _by_neighbours(column: Sequence[str], fixed: Sequence[str], links: Sequence[Link]) -> list[str]:
    """Sort *column* by the mean place of its neighbours in *fixed*; without any, stay."""
    place = {name: i / max(len(fixed) - 1, 1) for i, name in enumerate(fixed)}
    met: dict[str, list[float]] = {name: [] for name in column}
    for name, other in links:
        met[name].append(place[other])
    stay = {name: i / max(len(column) - 1, 1) for i, name in enumerate(column)}
    return sorted(column, key=lambda n: sum(met[n]) / len(met[n]) if met[n] else stay[n])


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Return places in the same order, at least *gap* apart, as near *wanted* as can be.

    Least squares: with ``gap`` times the place taken off, it is isotonic regression, solved
    by pooling neighbours that are out of order.
    """
    pools: list[tuple[float, int]] = []  # mean, size
    for i, want in enumerate(wanted):
        mean, size = want - i * gap, 1
        while pools and pools[-1][0] > mean:
            other, count = pools.pop()
            mean, size = (mean * size + other * count) / (size + count), size + count
        pools.append((mean, size))
    flat = [mean for mean, size in pools for _ in range(size)]
    return [value + i * gap for i, value in enumerate(flat)]


def place(
    columns: Sequence[Sequence[str]], links: Sequence[Sequence[Link]], gap: float
) -> list[Mapping[str, float]]:
    """Return the height of each box: the longest column evenly, the others beside their links.

    Heights grow downwards from 0 and boxes of a column stay at least *gap* apart.
    """
    longest = max(range(len(columns)), key=lambda i: len(columns[i]))
    bottom = (len(columns[longest]) - 1) * gap
    at: dict[int, dict[str, float]] = {
        longest: {name: i * gap for i, name in enumerate(columns[longest])}
    }
    steps = [(i, i + 1, links[i]) for i in range(longest - 1, -1, -1)]
    steps += [
        (i, i - 1, [(b, a) for a, b in links[i - 1]]) for i in range(longest + 1, len(columns))
    ]
    for i, neighbour, pairs in steps:
        met: dict[str, list[float]] = {name: [] for name in columns[i]}
        for name, other in pairs:
            met[name].append(at[neighbour][other])
        wanted: list[float] = []
        for name in columns[i]:  # one without links follows the one above it
            mean = sum(met[name]) / len(met[name]) if met[name] else None
            wanted.append(mean if mean is not None else (wanted[-1] if wanted else 0.0))
        heights = spread(wanted, gap)
        heights = [
            min(max(h, k * gap), bottom - (len(heights) - 1 - k) * gap)
            for k, h in enumerate(heights)
        ]
        at[i] = dict(zip(columns[i], heights, strict=True))
    return [at[i] for i in range(len(columns))]
