"""The shape of the project: imports go one way, pieces stay small, nothing of a machine is kept."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
PACKAGE = REPO / "seams_lab"

# docs/architecture.md, top to bottom: a module imports only from modules before it.
ORDER = (
    "errors",
    "vocabulary",
    "picture",
    "findings",
    "report",
    "payload",
    "expressions",
    "literals",
    "profile",
    "instants",
    "clock",
    "series",
    "explain",
    "graph",
    "timers",
    "due",
    "shapes",
    "lift",
    "drift",
    "impact",
    "check",
    "diagram",
    "plot",
    "model",
    "runtime",
    "clock_panel",
    "explore",
    "console",
    "replica_processes",
    "runtime_commands",
    "cli",
    "__main__",
    "__init__",
)
# The same inside the runtime.
RUNTIME = (
    "data",
    "conditions",
    "identity",
    "tasks",
    "timing",
    "stepping",
    "admission",
    "bpmn",
    "checkpoint",
    "engine",
    "schema",
    "rows",
    "statements",
    "firing_statements",
    "claim_statements",
    "transaction",
    "store",
    "telemetry",
    "worker",
    "scheduler",
    "loop",
    "deployment",
    "instance",
    "status",
    "timeline",
    "drawing",
    "pace",
    "scenario",
    "runtime",
    "__init__",
)
LONGEST_MODULE = 450
LONGEST_FUNCTION = 80
# Names longer than that, with the reason.
MAY_BE_LONGER: dict[str, str] = {}
# Modules without a test file of their own, with the reason.
TESTED_ELSEWHERE = {
    "literals": "reached through the profile alone; test_profile holds its cases",
    "__init__": "holds names only; each is tested where it is made",
    "__main__": "one call; test_cli runs the command line through it",
    "admission": "what a load refuses; test_bpmn holds its cases",
    "claim_statements": "a part of Transaction; test_transaction holds its cases",
    "firing_statements": "a part of Transaction; test_transaction holds its cases",
    "statements": "a part of Transaction; test_transaction holds its cases",
    "stepping": "a part of Engine; test_engine holds its cases",
    "tasks": "a part of Engine; test_engine holds its cases",
}
# The one place that asks what time it is.
MAY_READ_CLOCK = {"clock"}

SOURCES = sorted(PACKAGE.rglob("*.py"))
OWN_CODE = sorted([*SOURCES, *REPO.glob("tools/*.py"), *REPO.glob("benchmarks/*.py")])


def concept(path: Path) -> str:
    """The module or sub-package of seams_lab that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def names_of(paths: list[Path]) -> list[str]:
    """Test ids: paths from the root of the project."""
    return [path.relative_to(REPO).as_posix() for path in paths]


RUNTIME_SOURCES = sorted((PACKAGE / "runtime").glob("*.py"))

each_source = pytest.mark.parametrize("path", SOURCES, ids=names_of(SOURCES))
each_own_file = pytest.mark.parametrize("path", OWN_CODE, ids=names_of(OWN_CODE))


def test_the_order_names_each_module_once() -> None:
    assert sorted({concept(path) for path in SOURCES}) == sorted(ORDER)


@each_source
def test_imports_go_one_way(path: Path) -> None:
    assert upward_imports(path.read_text(encoding="utf-8"), concept(path)) == []


def test_the_order_names_each_module_of_the_runtime() -> None:
    assert sorted(path.stem for path in RUNTIME_SOURCES) == sorted(RUNTIME)


@pytest.mark.parametrize("path", RUNTIME_SOURCES, ids=names_of(RUNTIME_SOURCES))
def test_imports_inside_the_runtime_go_one_way(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert upward_imports(source, path.stem, RUNTIME, "seams_lab.runtime") == []


@pytest.mark.parametrize(
    ("source", "module", "wrong"),
    [
        ("from seams_lab.low import f", "mid", []),
        ("from seams_lab.top import f", "mid", ["top"]),
        ("from .top import f", "mid", ["top"]),
        ("from . import top, low", "mid", ["top"]),
        ("import seams_lab.top as t", "mid", ["top"]),
        ("def f():\n    from seams_lab import top", "mid", ["top"]),
        ("import seams_lab as sl", "top", ["__init__"]),
        ("from seams_lab import load", "top", ["__init__"]),
        ("from seams_lab import load", "__init__", []),
        ("from seams_lab.mid.part import f", "mid", []),
        ("import numpy", "low", []),
    ],
)
def test_an_import_against_the_flow_is_seen(source: str, module: str, wrong: list[str]) -> None:
    assert upward_imports(source, module, ("low", "mid", "top", "__init__")) == wrong


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("from seams_lab.runtime.low import f", []),
        ("from seams_lab.runtime.top import f", ["top"]),
        ("from seams_lab.runtime import low, top", ["top"]),
        ("import seams_lab.runtime.top", ["top"]),
        ("from seams_lab.due import utc", []),
    ],
)
def test_an_import_against_the_flow_of_the_runtime_is_seen(source: str, wrong: list[str]) -> None:
    order = ("low", "mid", "top", "__init__")
    assert upward_imports(source, "mid", order, "seams_lab.runtime") == wrong


def upward_imports(
    source: str, module: str, order: tuple[str, ...] = ORDER, package: str = "seams_lab"
) -> list[str]:
    """Concepts of *package* that *source*, a part of *module*, imports against *order*."""
    assert module in order, f"{module} has no place in ORDER"
    before = order[: order.index(module) + 1]
    found = imported(ast.parse(source), order, package.split("."))
    return [name for name in found if name not in before]


def imported(tree: ast.Module, order: tuple[str, ...], package: list[str]) -> Iterator[str]:
    """Yield the concepts of *package* that are imported anywhere in *tree*."""
    depth = len(package)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[:depth] == package:
                    yield parts[depth] if len(parts) > depth else "__init__"
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if node.level == 1:
                parts = [*package, *filter(None, parts)]
            if parts == package:
                for alias in node.names:
                    yield alias.name if alias.name in order else "__init__"
            elif parts[:depth] == package:
                yield parts[depth]


@each_own_file
def test_modules_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(REPO).as_posix()
    sizes = {name: len(text.splitlines())}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            sizes[f"{name}:{node.name}"] = lines
    limit = {key: LONGEST_FUNCTION if ":" in key else LONGEST_MODULE for key in sizes}
    long = {k: n for k, n in sizes.items() if n > limit[k] and k not in MAY_BE_LONGER}
    assert long == {}


@each_own_file
def test_public_names_say_what_they_are(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the module"
    assert [name for name, node in public(tree) if not ast.get_docstring(node)] == []


def public(
    tree: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    """Yield the public classes, functions, methods and properties of a module or class."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node, f"{prefix}{node.name}.")


def test_each_module_has_its_tests() -> None:
    modules = {concept(path) for path in SOURCES} - TESTED_ELSEWHERE.keys()
    modules |= {path.stem for path in RUNTIME_SOURCES} - TESTED_ELSEWHERE.keys()
    assert [m for m in sorted(modules) if not (REPO / "tests" / f"test_{m}.py").exists()] == []


@each_source
def test_the_clock_of_the_machine_is_not_read(path: Path) -> None:
    if concept(path) not in MAY_READ_CLOCK:
        assert clock_reads(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "datetime.now(UTC)",
        "dt.datetime.utcnow()",
        "date.today()",
        "pd.Timestamp.now('UTC')",
        "f(default=datetime.now)",
        "time.time()",
        "time.time_ns()",
        "from time import time",
        "pd.Timestamp('now')",
        "np.datetime64('today')",
    ],
)
def test_a_read_of_the_clock_is_seen(source: str) -> None:
    assert clock_reads(source) != []


@pytest.mark.parametrize("source", ["model.now", "clock.now()", "time.perf_counter()", "x = 'now'"])
def test_what_is_no_read_of_the_clock_is_let_be(source: str) -> None:
    assert clock_reads(source) == []


# Reads by name, and the texts that numpy and pandas take for a read.
CLOCK = re.compile(
    r"(^|\.)((datetime|Timestamp|date)\.(now|utcnow|today)|time\.(time|time_ns|localtime|gmtime))$"
    r"|(^|\.)(Timestamp|datetime64|to_datetime)\(['\"](now|today)['\"]"
)
DURATIONS = {"monotonic", "perf_counter", "perf_counter_ns", "process_time", "sleep"}


def clock_reads(source: str) -> list[str]:
    """The expressions and imports in *source* that read the clock of the machine."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute | ast.Call) and CLOCK.search(said := ast.unparse(node)):
            found.append(said)
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            found += [alias.name for alias in node.names if alias.name not in DURATIONS]
    return found


# One letter of each stands in brackets, so that this file does not match itself.
OF_A_MACHINE = {
    "a path of a machine": r"(?<![\w.:/-])/(?:wor[k]|roo[t]|home/[\w]+)/",
    "a folder beside the project": r"\.\./share[d]",
    "a tool of a workplace": r"\.librar[y]/|far[m]-(?:bench|studio)",
    "a package registry": r"pypi\.or[g]|pythonhoste[d]|\.npmj[s]\.|deb\.debia[n]|conda\.or[g]",
}
NOT_KEPT = {".git", ".venv", "__pycache__", "build", "dist", "node_modules"}


def kept_files() -> list[Path]:
    """The files that a commit would hold; without git, all but what is made by tools."""
    if (REPO / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
        names = filter(None, listed.stdout.split("\0"))
        return sorted(path for path in (REPO / name for name in names) if path.is_file())
    return sorted(
        path
        for path in REPO.rglob("*")
        if path.is_file()
        and not any(
            part in NOT_KEPT or re.fullmatch(r"\..*_cache|\.hypothesis|.*\.egg-info", part)
            for part in path.relative_to(REPO).parts
        )
    )


def test_nothing_of_a_machine_is_kept() -> None:
    found = []
    for path in kept_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        name = path.relative_to(REPO).as_posix()
        found += [f"{name}: {what}" for what, p in OF_A_MACHINE.items() if re.search(p, text)]
    assert found == []


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(tmp_path), str(REPO)]
    subprocess.run(command, check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    kept = {p.relative_to(REPO).as_posix() for p in kept_files() if p.is_relative_to(PACKAGE)}
    assert kept - inside == set()
    assert {name for name in inside if ".dist-info/" not in name} - kept == set()
    assert any(name.endswith(".rq") for name in inside)
    assert any(name.endswith("dist-info/licenses/LICENSE") for name in inside)
