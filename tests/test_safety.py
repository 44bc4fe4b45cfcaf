"""What the package never does: run code from a file, or leave its folder, or use the network."""

import ast
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import deep_oversampling
from deep_oversampling import InputError
from deep_oversampling.data.official.catalogue import CATALOGUE
from deep_oversampling.runs import Run, evaluate
from fuzzing import whole
from fuzzing.readers import READERS

PACKAGE = Path(deep_oversampling.__file__).parent
TREES = {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("path", TREES, ids=_name)
def test_no_file_is_read_as_a_program(path: Path) -> None:
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            assert not {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal"} & set(modules)
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            options = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert called not in ("eval", "exec", "torch.load", "os.system", "joblib.load")
            assert options.get("allow_pickle", "False") == "False"
            assert options.get("shell", "False") == options.get("trust_remote_code", "False")


def test_python_files_are_run_in_one_place_only() -> None:
    """`zoo._from_file`, by the user's own word: runs ask for it again."""
    users = [_name(p) for p, tree in TREES.items() if "exec_module" in ast.unparse(tree)]
    assert users == ["zoo.py"]


@pytest.mark.parametrize("model", ["evil.py:make", "timm:hf-hub:evil/evil", "x/evil.py:make"])
def test_a_run_never_names_the_code_that_is_run(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that in its own folder nor that in the current one."""
    files = whole.run()
    record = files["run.json"].replace(b'"model": "mlp"', f'"model": "{model}"'.encode())
    (tmp_path / "x").mkdir()
    for folder in (tmp_path, tmp_path / "x"):
        for name, content in {**files, "run.json": record}.items():
            (folder / name).write_bytes(content)
        (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    run = Run.open(tmp_path)
    with pytest.raises(InputError, match=r"no code that a run names is run unasked"):
        run.network(device="cpu")
    with pytest.raises(InputError, match=r"no code that a run names is run unasked"):
        evaluate(run, whole.samples())
    assert not (tmp_path / "ran").exists()


def test_every_download_has_a_checksum_and_tries_https_first() -> None:
    downloads = [one for source in CATALOGUE.values() for one in source.downloads]
    assert downloads
    for one in downloads:
        assert one.urls[0].startswith("https://")
        assert all(url.startswith(("https://", "http://")) for url in one.urls)
        for file in (one.file, *one.members):
            kind, _, digest = file.hash.partition(":")
            assert len(digest) == {"md5": 32, "sha1": 40, "sha256": 64}[kind]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*given: object, **options: object) -> None:
        raise AssertionError(f"the network was used: {given}")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    monkeypatch.setattr(socket, "create_connection", forbidden)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_readers_need_no_network(reader: object, tmp_path: Path) -> None:
    reader.read(reader.put(tmp_path, reader.files()))


# sockets are closed before anything of the package is imported; files of the tests serve as data
PROGRAM = """
import socket, sys
def forbidden(*given, **options):
    raise SystemExit(f"the network was used: {given}")
for name in ("connect", "connect_ex", "sendto", "bind"):
    setattr(socket.socket, name, forbidden)
socket.getaddrinfo = socket.create_connection = forbidden
from pathlib import Path
import numpy as np
from PIL import Image
from typer.testing import CliRunner
from deep_oversampling.cli import app
for name, count in {"apple": 12, "pear": 6}.items():
    for i in range(count):
        Path("fruit", name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((16, 16, 3), 9 * i, np.uint8)).save(f"fruit/{name}/{i}.png")
for line in sys.stdin.read().splitlines():
    result = CliRunner().invoke(app, line.split("|"))
    assert result.exit_code == 0, (line, result.output, result.exception)
"""

COMMANDS = """
--help
train|digits|--rounds|1|--device|cpu|--out|run
info|run
evaluate|run|digits|--device|cpu
report|run
export|run|--format|safetensors
train|fruit|--rounds|1|--device|cpu|--out|of-pictures
predict|of-pictures|fruit/pear
reproduce|--render|--out|results
bench|search|--quick|--device|cpu|--out|bench.json
data|list
data|verify|digits
data|show|digits|--imbalance|exp:10|--index|index.json
compare|--data|digits|--methods|cnn,dos|--trials|1|--rounds|1|--device|cpu|--out|compared
demo|--rounds|1|--trials|1
"""


@pytest.mark.slow
def test_every_command_but_fetch_works_without_a_network(tmp_path: Path) -> None:
    for name, content in whole.results().items():
        (tmp_path / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "results" / name).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=COMMANDS.strip(),
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
