"""What stops when nodes die: against a slow reference that thinks in sets, one loss at a time."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seams_lab as sl
from seams_lab.graph import load_graph
from seams_lab.impact import EFFECTS, Placement

PREFIXES = """
@prefix seam: <https://w3id.org/seams/seam#> . @prefix arch: <https://w3id.org/seams/arch#> .
@prefix proc: <https://w3id.org/seams/proc#> . @prefix : <https://example.org/> .
"""


def turtle(
    *,
    contains: dict[str, list[str]],
    deployed: dict[str, list[str]],
    stores: dict[str, tuple[str, list[str]]],
    scheduled: dict[str, list[str]],
    executed: dict[str, list[str]],
    nodes: list[str],
) -> str:
    """A model: each key of *scheduled* and *executed* is a process with one timer of that kind."""
    lines = [PREFIXES, *(f":{n} a arch:DeploymentNode ." for n in nodes)]
    lines += [f":{a} arch:contains :{b} ." for a, bs in contains.items() for b in bs]
    containers = {*deployed, *itertools.chain(*scheduled.values(), *executed.values())}
    for c in sorted(containers):
        lines.append(f":{c} a arch:Container .")
        lines += [f":{c} seam:deployedTo :{n} ." for n in deployed.get(c, [])]
        if c in stores:
            technology, on = stores[c]
            lines.append(f":{c} seam:storedIn :{c}_db .")
            lines.append(f':{c}_db a arch:Container ; arch:technology "{technology}" .')
            lines += [f":{c}_db seam:deployedTo :{n} ." for n in on]
    for kind, relation, processes in [
        ("TimerStartEvent", "schedules", scheduled),
        ("TimerCatchEvent", "executes", executed),
    ]:
        for p, by in processes.items():
            lines.append(f":{p} a proc:Process ; seam:detailedBy :m_{p} .")
            lines.append(f"<https://example.org/m_{p}#t> a proc:{kind} ; seam:inModel :m_{p} .")
            lines += [f":{c} seam:{relation} :{p} ." for c in by]
    return "\n".join(lines)


def load(tmp: Path, **model: object) -> sl.Model:
    path = tmp / "model.trig"
    path.write_text(turtle(**model))  # type: ignore[arg-type]
    return sl.load(path)


def effects(frame: pd.DataFrame) -> dict[str, str]:
    return dict(zip(frame["process"], frame["effect"].astype(str), strict=True))


# ------------------------------------------------------------------------------- the reference


def reference(model: Any, dead: set[str]) -> dict[str, str]:
    """The rules of ruling 14, written down as sets."""
    gone, grown = set(dead), True
    while grown:
        more = {b for a in gone for b in model["contains"].get(a, [])} - gone
        grown, gone = bool(more), gone | more

    def part(on: list[str]) -> str:
        if not on:
            return "unplaced"
        left = [n for n in on if n not in gone]
        return "untouched" if len(left) == len(on) else "degraded" if left else "stops"

    def container(c: str) -> str:
        found = [part(model["deployed"].get(c, []))]
        if c in model["stores"]:
            technology, on = model["stores"][c]
            if on or technology != "SQLite":
                found.append(part(on))
        return max(found, key=EFFECTS.index)

    answer = {}
    for process, runners in [*model["scheduled"].items(), *model["executed"].items()]:
        states = [s for s in map(container, runners) if s != "unplaced"]
        if not states:
            answer[process] = "unplaced"
        elif set(states) == {"stops"}:
            answer[process] = "stops"
        else:
            answer[process] = "untouched" if set(states) == {"untouched"} else "degraded"
    return answer


NODES = [f"n{i}" for i in range(6)]
CONTAINERS = [f"c{i}" for i in range(4)]
some_nodes = st.lists(st.sampled_from(NODES), unique=True, max_size=3)
random_models = st.fixed_dictionaries(
    {
        "nodes": st.just(NODES),
        # Contained nodes may form chains and even circles.
        "contains": st.dictionaries(st.sampled_from(NODES), some_nodes, max_size=3),
        "deployed": st.fixed_dictionaries({c: some_nodes for c in CONTAINERS}),
        "stores": st.dictionaries(
            st.sampled_from(CONTAINERS),
            st.tuples(st.sampled_from(["PostgreSQL 16", "SQLite"]), some_nodes),
        ),
        "scheduled": st.dictionaries(
            st.sampled_from(["p0", "p1", "p2"]),
            st.lists(st.sampled_from(CONTAINERS), unique=True, max_size=1),
        ),
        "executed": st.dictionaries(
            st.sampled_from(["q0", "q1"]),
            st.lists(st.sampled_from(CONTAINERS), unique=True, max_size=3),
        ),
    }
)


@given(model=random_models, dead=st.sets(st.sampled_from(NODES)))
def test_impact_equals_the_reference(
    model: Any, dead: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    loaded = load(tmp_path_factory.mktemp("m"), **model)
    assert effects(sl.impact(loaded, sorted(dead))) == reference(model, dead)


@given(model=random_models)
def test_the_matrix_is_impact_of_each_node_alone(
    model: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    loaded = load(tmp_path_factory.mktemp("m"), **model)
    matrix = sl.impact_matrix(loaded).droplevel("event")
    for node in NODES:
        assert matrix[node].to_dict() == reference(model, {node})


@given(model=random_models)
def test_cut_sets_are_all_smallest_losses_and_nothing_else(
    model: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    loaded = load(tmp_path_factory.mktemp("m"), **model)
    found = sl.cut_sets(loaded)
    assert found.attrs["not_searched"] == []
    by_size = [{frozenset(c) for c in itertools.combinations(NODES, size)} for size in range(1, 7)]
    for process in [*model["scheduled"], *model["executed"]]:
        smallest: set[frozenset[str]] = set()
        for choices in by_size:
            smallest = {c for c in choices if reference(model, set(c))[process] == "stops"}
            if smallest:
                break
        got = found[found["process"] == process]
        assert {frozenset(nodes.split(", ")) for nodes in got["nodes"]} == smallest
        assert len(got) == len(smallest)
        assert (got["size"] == got["nodes"].str.count(",") + 1).all()


@given(
    model=random_models, first=st.sets(st.sampled_from(NODES)), more=st.sets(st.sampled_from(NODES))
)
def test_losing_more_never_helps(
    model: Any,
    first: set[str],
    more: set[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    loaded = load(tmp_path_factory.mktemp("m"), **model)
    before = sl.impact(loaded, sorted(first))["effect"].cat.codes
    after = sl.impact(loaded, sorted(first | more))["effect"].cat.codes
    assert (after >= before).all()


# ------------------------------------------------------------------------------- the three reasons

SMALL = {
    "nodes": ["host", "a", "b", "db1", "db2"],
    "contains": {"host": ["a"]},
    "deployed": {"api": ["a", "b"], "job": ["a"]},
    "stores": {"api": ("PostgreSQL", ["db1", "db2"]), "job": ("SQLite", [])},
    "scheduled": {"digest": ["api"], "report": ["job"], "orphan": []},
    "executed": {"approval": ["api", "job"]},
}


@pytest.mark.parametrize(
    ("dead", "process", "effect", "cause", "said"),
    [
        (["a"], "digest", "degraded", "own node", "b left"),
        (["a"], "report", "stops", "own node", "none left"),
        (["host"], "report", "stops", "containing node", "a (contained)"),
        (["db1"], "digest", "degraded", "store", "db2 left"),
        (["db1", "db2"], "digest", "stops", "store", "api_db loses db1, db2; none left"),
        (["db1", "db2"], "report", "untouched", "", "no node is lost"),
        (["a"], "approval", "degraded", "own node", "another container still executes it"),
        (["a", "b"], "approval", "stops", "own node", "none left"),
        (["a"], "orphan", "unplaced", "", "no container schedules orphan"),
    ],
)
def test_the_answer_says_which_reason_applies(
    tmp_path: Path, dead: list[str], process: str, effect: str, cause: str, said: str
) -> None:
    row = sl.impact(load(tmp_path, **SMALL), dead).set_index("process").loc[process]
    assert (row["effect"], row["cause"]) == (effect, cause)
    assert said in row["reason"]


@pytest.mark.parametrize("name", ["https://example.org/a", "a"])
def test_a_node_is_named_by_iri_or_short_name(tmp_path: Path, name: str) -> None:
    frame = sl.impact(load(tmp_path, **SMALL), name)
    assert effects(frame)["report"] == "stops"


def test_an_unknown_node_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(sl.UnusableInput, match=r"hots.*did you mean 'host'"):
        sl.impact(load(tmp_path, **SMALL), ["hots"])


def test_a_search_that_is_cut_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The package's function of the same name hides the module.
    monkeypatch.setattr(sys.modules["seams_lab.impact"], "_MAX_TRIED", 2)
    found = sl.cut_sets(load(tmp_path, **SMALL))
    assert "https://example.org/m_digest#t" in found.attrs["not_searched"]
    assert "digest" not in set(found["process"])


def test_the_plain_query_agrees_where_its_rules_are_the_same(models: Path) -> None:
    """R61 sees own nodes only: what it finds is at least degraded in the full answer."""
    from rdflib import URIRef

    from seams_lab.vocabulary import query

    graph = load_graph(models / "expense")
    for node in graph.nodes:
        rows = graph.dataset.query(query("schedules-of-node", node=URIRef(node)))
        hit = {str(row.process) for row in rows}
        frame = sl.impact(graph, node)
        affected = set(
            frame[(frame["role"] == "starts") & (frame["effect"] > "untouched")]["process"]
        )
        assert {graph.name(p) for p in hit} <= affected


def test_placement_of_a_bare_file_is_empty(tmp_path: Path, models: Path) -> None:
    graph = load_graph(models / "expense" / "approval.bpmn")
    assert Placement(graph).timers == []
    assert sl.impact_matrix(graph).shape == (0, 0)


def test_paths_have_a_row_per_link_and_mark_what_is_lost(tmp_path: Path) -> None:
    table = sl.paths(load(tmp_path, **SMALL), "host")
    links = table[["node", "role", "container", "process"]].fillna("")
    rows = set(links.itertuples(index=False, name=None))
    assert {r for r in rows if r[3] == "digest"} == {
        ("a", "runs", "api", "digest"),
        ("b", "runs", "api", "digest"),
        ("db1", "stores", "api", "digest"),
        ("db2", "stores", "api", "digest"),
    }
    assert {r for r in rows if r[3] == "orphan"} == {("", "runs", "", "orphan")}
    assert set(table.loc[table["lost"], "node"]) == {"a"}
    assert effects(table.drop_duplicates("process")) == effects(
        sl.impact(load(tmp_path, **SMALL), "host")
    )
