"""The package's names: the same for type checkers and at run time, and none before it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import deep_oversampling

STUB = ast.parse(Path(deep_oversampling.__file__).with_suffix(".pyi").read_text())


def test_type_checkers_are_told_the_names_that_there_are() -> None:
    imported = [node for node in STUB.body if isinstance(node, ast.ImportFrom)]
    told = {alias.name: node.module for node in imported for alias in node.names}
    (listed,) = (node.value for node in STUB.body if isinstance(node, ast.Assign))
    assert sorted(told) == sorted(ast.literal_eval(listed)) == deep_oversampling.__all__
    for name, module in told.items():
        value = getattr(deep_oversampling, name)
        assert value.__module__ == f"deep_oversampling.{module}"
        assert name in dir(deep_oversampling)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'deep_oversampling' has no attribute 'fti'"):
        deep_oversampling.fti  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'fti'"):
        from deep_oversampling import fti  # noqa: F401


@pytest.mark.parametrize("command", [["--help"], ["train", "--help"], ["--version"]])
def test_the_command_line_helps_without_torch_and_scikit_learn(command: list[str]) -> None:
    program = (
        "import sys\nfrom deep_oversampling.cli import main\n"
        "try:\n    main()\nfinally:\n    print(sorted({'torch', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command], capture_output=True, text=True, check=False
    )
    assert done.stdout.rstrip().endswith("[]"), done.stdout + done.stderr
