"""The house holds: imports point upstream, and a line of code knows its room."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import deep_oversampling
from deep_oversampling import fit
from deep_oversampling.estimator import DOSClassifier

PACKAGE = Path(deep_oversampling.__file__).parent
PROJECT = PACKAGE.parents[1]

# Rooms from the source of the river to its mouth: one may import from those before it only. A
# folder is one room; the package itself, "", stands where its __init__ gathers what users call.
ORDER = [
    "errors",
    "memory",
    "moments",
    "reading",
    "schema",
    "writing",
    "durable",
    "locking",
    "seeding",
    "peers",
    "trees",
    "ahead",
    "views",
    "augmentation",
    "samples",
    "plan",
    "network",
    "shared_norm",
    "models",
    "residual",
    "nearest",
    "approximate",
    "overloading",
    "embeddings",
    "losses",
    "pull",
    "oversampling",
    "pieces",
    "objectives",
    "presenting",
    "stacking",
    "replaying",
    "cuda_graphs",
    "engine",
    "training",
    "metrics",
    "calibration",
    "history",
    "mishaps",
    "callbacks",
    "logistic",
    "probes",
    "optimizer_state",
    "snapshots",
    "snapshot_checks",
    "branching",
    "resuming",
    "stages",
    "stopping",
    "turns",
    "together",
    "checks",
    "checkpoint",
    "zoo",
    "export",
    "duration",
    "algorithm",
    "beginning",
    "fitting",
    "data",
    "selection",
    "arrays",
    "estimator",
    "demo",
    "",
    "rivals",
    "workers",
    "paper",
    "report",
    "runs",
    "bench",
    "cli",
    "__main__",
]

# Rooms that may know less than what lies upstream of them.
MAY_IMPORT = {
    "losses": set(),  # not the network, not the optimiser, not the minority
    "pull": set(),
    "nearest": set(),  # not classes of samples, not a network
    "approximate": {"errors"},
    "overloading": {"errors", "nearest", "approximate", "peers"},  # not a network
    "plan": {"errors"},  # not samples, not embeddings
    # owns no seed, asks no network
    "oversampling": {"errors", "embeddings", "overloading", "peers", "plan", "samples"},
    "moments": {"errors"},
    "metrics": {"errors"},
    "calibration": {"errors"},
    "logistic": {"errors"},
    # not that classes are treated differently
    "data": {"errors", "reading", "schema", "samples", "seeding", "views", "augmentation"},
}

FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in FILES}


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


every_file = pytest.mark.parametrize("path", FILES, ids=name)


def imports(path: Path) -> Iterator[str]:
    """The rooms that a file imports from."""
    package = path.parent.relative_to(PACKAGE).parts  # of the file
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            base = [part for part in base if part]
            if base:
                yield base[0]
            else:  # from . import x
                yield from ("" if not _is_room(alias.name) else alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if not modules else []
            for module in modules:
                first, _, rest = (module or "").partition(".")
                if first == PACKAGE.name:
                    yield rest.split(".")[0]


def _is_room(module: str) -> bool:
    return (PACKAGE / f"{module}.py").exists() or (PACKAGE / module).is_dir()


def calls(path: Path) -> Iterator[tuple[str, str]]:
    """Every call as (what it is called on, function): ("torch", "manual_seed"), ("", "print")."""
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield "", node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield ast.unparse(node.func.value), node.func.attr


@every_file
def test_imports_point_upstream(path: Path) -> None:
    here = room(path)
    assert here in ORDER, f"give {name(path)} its place in ORDER"
    for other in imports(path):
        if other == here and path.parent != PACKAGE:
            continue  # files of one folder may share
        assert ORDER.index(other) < ORDER.index(here), f"{name(path)} imports {other or 'all'}"


@every_file
def test_narrow_rooms_know_little(path: Path) -> None:
    here = room(path)
    allowed = MAY_IMPORT.get(here, set(ORDER)) | ({here} if path.parent != PACKAGE else set())
    assert set(imports(path)) <= allowed


@every_file
def test_only_the_command_prints(path: Path) -> None:
    if room(path) != "cli":
        assert ("", "print") not in set(calls(path))


@every_file
def test_optimisers_step_and_losses_go_backward_only_in_training(path: Path) -> None:
    made = {function for on, function in calls(path) if on != "scheduler"}
    trial = {"step"} if room(path) == "optimizer_state" else set()  # of a copy that is thrown away
    assert not (made - trial) & {"step", "backward"} or room(path) == "training"


@every_file
def test_only_seeding_seeds(path: Path) -> None:
    seeds = {"seed", "manual_seed", "manual_seed_all", "seed_all", "set_rng_state"}
    made = {function for _, function in calls(path)}
    assert not made & seeds or room(path) == "seeding"


@every_file
def test_nothing_is_bound_to_one_device_or_guessed(path: Path) -> None:
    assert not {function for _, function in calls(path)} & {"cuda", "hasattr", "eval_"}


@every_file
def test_no_star_imports_and_no_globals(path: Path) -> None:
    for node in ast.walk(TREES[path]):
        assert not isinstance(node, ast.Global)
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names)


@every_file
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(TREES[path])


@every_file
def test_every_module_names_what_it_offers(path: Path) -> None:
    if path == PACKAGE / "__init__.py":
        return  # its names are those of the stub beside it: test_importing.py
    names = [
        ast.literal_eval(node.value)
        for node in TREES[path].body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    if path.name == "__main__.py":
        return  # it is run, not imported
    if path.name == "__init__.py" and not [n for n in TREES[path].body if _imports(n)]:
        return  # a folder that gathers nothing
    assert len(names) == 1
    defined = {node.id for node in ast.walk(TREES[path]) if isinstance(node, ast.Name)}
    defined |= {getattr(node, "name", "") for node in TREES[path].body}
    defined |= {
        alias.asname or alias.name for n in TREES[path].body if _imports(n) for alias in n.names
    }
    assert set(names[0]) <= defined


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _defined(tree: ast.Module) -> Iterator[str]:
    """The names that the top level of a module binds."""
    for node in tree.body:
        if _imports(node):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            yield from map(ast.unparse, node.targets)
        elif isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


@pytest.mark.parametrize(
    "path", [*FILES, *sorted((PROJECT / "tests").glob("*.py"))], ids=lambda path: path.name
)
def test_files_can_be_read_in_one_sitting(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 350


def readings(text: str) -> set[str]:
    return set(re.findall(r"\bR\d+\b", text))


def test_every_reading_cited_is_written_down() -> None:
    cited = set().union(*(readings(path.read_text()) for path in FILES))
    assert cited
    assert cited <= readings((PROJECT / "docs" / "readings.md").read_text())


@pytest.mark.parametrize("option", ["pull", "pull_limit", "weighted", "recover"])
def test_estimator_has_the_defaults_of_fit(option: str) -> None:
    ours, theirs = (inspect.signature(f).parameters[option] for f in (fit, DOSClassifier))
    assert ours.default == theirs.default
