"""``python tests/mutating.py losses plan``: tests must notice when a line of the core is wrong.

Every mutant is the file with one small change: another operator, a number that is one more, a
condition turned round, a statement left out. It is tried in a process of its own with the tests of
that file; one that no test fails for has survived, and is printed.
"""

import ast
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "deep_oversampling"
SECONDS = 300  # for the tests of one mutant: one that hangs is noticed too, and counted apart
TESTS = {
    "losses": ("losses", "objective", "rival_losses"),
    "overloading": ("neighbors", "approximate"),
    "oversampling": ("oversampling", "own_loop", "objective", "embeddings"),
    "embeddings": ("embeddings",),
    "moments": ("embeddings", "oversampling", "history"),
    "pieces": ("pieces", "pieces_refused"),
    "plan": ("plan",),
    "pull": ("pull", "objective"),
    "objectives": ("objective", "loss_inside_dos", "own_loop"),
}

# before the processes are forked: most of the time of a mutant would go into it
_LOADED_ONCE = ("torch", "torch.utils.data", "sklearn.datasets", "sklearn.neighbors", "hypothesis")
_LOADED_ONCE += ("scipy.stats", "sklearn.metrics", "PIL.Image", "safetensors.torch", "pandas")

_SWAPPED = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
}
_NAMES = {"min": "max", "max": "min", "any": "all", "minimum": "maximum", "mean": "sum"}


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Fields of a node, and what else might stand there."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp) and type(node.op) in _SWAPPED:
        yield "op", _SWAPPED[type(node.op)]()
    if isinstance(node, ast.Compare) and (swapped := _SWAPPED.get(type(node.ops[0]))):
        yield "ops", [swapped(), *node.ops[1:]]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "value", node.value + 1
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "value", not node.value
    if isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield "attr", _NAMES[node.attr]
    if isinstance(node, ast.Name) and node.id in _NAMES:
        yield "id", _NAMES[node.id]
    if isinstance(node, ast.If | ast.IfExp):
        yield "test", ast.UnaryOp(ast.Not(), node.test)
    if isinstance(node, ast.UnaryOp):  # − , ~ and not, left out
        yield "", node.operand
    if isinstance(node, ast.Expr | ast.Raise) and not _is_text(node):
        yield "", ast.Pass()


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _nodes(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Every place of a node below: its parent, the field, the place in a list. No annotations."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for i, one in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(one, ast.AST):
                yield node, name, i if isinstance(value, list) else None
                yield from _nodes(one)


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """The line, what it is changed to, and the whole text."""
    tree = ast.parse(source)
    for n, (parent, name, i) in enumerate(_nodes(tree)):
        node = _get(parent, name, i)
        for c, _ in enumerate(_changes(node)):
            copy = deepcopy(tree)
            parent_, name_, i_ = list(_nodes(copy))[n]
            inner = _get(parent_, name_, i_)
            field, value = list(_changes(inner))[c]
            if field:
                setattr(inner, field, value)
            elif i_ is None:
                setattr(parent_, name_, value)
            else:
                getattr(parent_, name_)[i_] = value
            text = ast.unparse(ast.fix_missing_locations(copy))
            shown = ast.unparse(inner if field else value)  # type: ignore[arg-type]
            yield node.lineno, f"{ast.unparse(node):.60} -> {shown:.60}", text


def _get(parent: ast.AST, name: str, i: int | None) -> ast.AST:
    value = getattr(parent, name)
    found: ast.AST = value if i is None else value[i]
    return found


def fate(room: str, text: str) -> str:
    """In a process of its own, on a copy of the package: survived, killed or hung."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(_try(room, text))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return {0: "survived", -signal.SIGALRM: "hung"}.get(code, "killed")


def _try(room: str, text: str) -> int:
    signal.alarm(SECONDS)  # ends the process
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(PACKAGE, Path(place) / PACKAGE.name)
        (Path(place) / PACKAGE.name / f"{room}.py").write_text(text)
        sys.path.insert(0, place)
        os.chdir(ROOT)
        files = [f"tests/test_{name}.py" for name in TESTS[room]]
        quiet = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={place}/tests"]
        quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # for what is loaded already
        return int(pytest.main([*quiet, *files]))


def main() -> None:
    for module in _LOADED_ONCE:
        import_module(module)
    for room in sys.argv[1:] or TESTS:
        source = (PACKAGE / f"{room}.py").read_text()
        if (found := fate(room, ast.unparse(ast.parse(source)))) != "survived":
            sys.exit(f"{room}: its tests must pass as it is, found: {found}")
        fates: Counter[str] = Counter()
        for line, change, text in mutants(source):
            fates[found := fate(room, text)] += 1
            if found != "killed":
                print(f"  {found}: {room}.py:{line}: {change}", flush=True)  # noqa: T201
        noticed = fates["killed"] + fates["hung"]
        share = noticed / fates.total()
        print(  # noqa: T201
            f"{room}: {noticed} of {fates.total()} noticed, {share:.0%}; hung: {fates['hung']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
