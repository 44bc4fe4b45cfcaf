"""Fetching from a server on this machine that answers well, badly, or not at all."""

import hashlib
import io
import re
import socket
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deep_oversampling import InputError
from deep_oversampling.data.official import download
from deep_oversampling.data.official.catalogue import Download, File, Source
from deep_oversampling.data.official.download import Fetched, State, fetch, in_words, verify
from serving import Server

CONTENT = bytes(range(256)) * 1200  # 300 kB: several of the pieces that are written at a time
HALF = len(CONTENT) // 2


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")
    with Server() as server:
        server.content["file.bin"] = CONTENT
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def file(path: str, content: bytes, sized: bool = True) -> File:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return File(path, f"md5:{md5}", len(content) if sized else None)


def one(server: Server, *how: str, sized: bool = True) -> dict[str, Source]:
    """A catalogue of one file, at one or more addresses."""
    urls = tuple(server.url(each) for each in how)
    only = Download(file("set/file.bin", CONTENT, sized), urls)
    return {"set": Source("set", "Set", "", "", (only,))}


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def part(folder: Path, content: bytes) -> Path:
    path = folder / "set" / "file.bin.part"
    path.parent.mkdir()
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("how", ["range", "whole", "encoded"])
def test_files_are_fetched_to_their_place(server: Server, tmp_path: Path, how: str) -> None:
    known = one(server, how)
    (there,) = known["set"].files
    assert verify("set", tmp_path, catalogue=known) == [(there, State.MISSING)]
    seen: list[tuple[str, int, int | None]] = []
    fetched = fetch("set", tmp_path, lambda *step: seen.append(step), catalogue=known)
    assert fetched == Fetched(known["set"], (there,), ())
    assert (tmp_path / "set" / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == {"set/file.bin"}
    assert verify("set", tmp_path, catalogue=known) == [(there, State.OFFICIAL)]
    assert seen[-1] == ("set/file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in seen] == sorted({done for _, done, _ in seen})


def test_what_is_there_is_left_alone(server: Server, tmp_path: Path) -> None:
    known = one(server, "whole")
    fetch("set", tmp_path, catalogue=known)
    server.asked.clear()
    assert fetch("set", tmp_path, catalogue=known) == Fetched(known["set"], (), ())
    path = tmp_path / "set" / "file.bin"
    for other in (b"short", CONTENT[::-1]):
        path.write_bytes(other)
        fetched = fetch("set", tmp_path, catalogue=known)
        assert path.read_bytes() == other
        assert fetched.new == ()
        assert re.search(r"differs .* used as it is; to replace it, delete it", fetched.notes[0])
        assert [state for _, state in verify("set", tmp_path, catalogue=known)] == ["differs"]
    assert server.asked == []


def test_a_download_that_broke_off_goes_on(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"broke off.*fetch again later \(it goes on from what"):
        fetch("set", tmp_path, catalogue=one(server, "broken"))
    assert names(tmp_path) == {"set/file.bin.part"}
    have = (tmp_path / "set" / "file.bin.part").stat().st_size
    assert 0 < have <= HALF
    fetch("set", tmp_path, catalogue=one(server, "range"))
    assert server.asked[-1] == ("range", f"bytes={have}-")
    assert (tmp_path / "set" / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == {"set/file.bin"}


def test_the_next_address_goes_on_where_the_last_broke_off(server: Server, tmp_path: Path) -> None:
    fetch("set", tmp_path, catalogue=one(server, "missing", "broken", "range", "wrong"))
    assert [how for how, _ in server.asked] == ["missing", "broken", "range"]
    assert server.asked[-1][1] is not None
    assert names(tmp_path) == {"set/file.bin"}


@pytest.mark.parametrize(
    ("how", "begun", "sized", "requests"),
    [
        ("whole", CONTENT[:HALF], True, 1),  # the server ignores Range and sends everything
        ("shifted", CONTENT[:HALF], True, 2),
        ("range", b"another file" * 999, True, 2),  # goes on, is wrong, starts again
        ("range", CONTENT + b"more", True, 1),
        ("range", CONTENT + b"more", False, 2),  # 416
        ("range", CONTENT, True, 0),  # killed before the file got its name
        ("range", CONTENT, False, 0),
    ],
    ids=["ignored", "shifted", "other", "too long", "416", "whole", "whole, size unknown"],
)
def test_whatever_was_begun_the_file_is_right_in_the_end(
    server: Server, tmp_path: Path, how: str, begun: bytes, sized: bool, requests: int
) -> None:
    part(tmp_path, begun)
    fetch("set", tmp_path, catalogue=one(server, how, sized=sized))
    assert (tmp_path / "set" / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == {"set/file.bin"}
    assert len(server.asked) == requests


def test_wrong_bytes_are_removed_and_both_checksums_said(server: Server, tmp_path: Path) -> None:
    found = file("", CONTENT[::-1]).hash
    right = file("", CONTENT).hash
    with pytest.raises(InputError, match=rf"checksum {found} where {right} is official \(removed"):
        fetch("set", tmp_path, catalogue=one(server, "wrong"))
    assert names(tmp_path) == set()
    fetch("set", tmp_path, catalogue=one(server, "wrong", "whole"))
    assert names(tmp_path) == {"set/file.bin"}


@pytest.mark.parametrize(
    ("how", "reason"),
    [("missing", "answered 404 Not Found"), ("denied", "answered 403"), ("slow", "in time")],
)
def test_a_server_without_the_file_is_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, reason: str
) -> None:
    monkeypatch.setattr(download, "_TIMEOUT", (0.3, 0.3))
    message = (
        rf"set/file.bin must come from.*{server.url(how)} .*{reason}.*put file.bin into (.*) by"
    )
    with pytest.raises(InputError, match=message) as caught:
        fetch("set", tmp_path, catalogue=one(server, how))
    assert str(tmp_path / "set") in str(caught.value)
    assert names(tmp_path) == set()


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_without_a_network_one_error_says_what_to_do(
    server: Server, tmp_path: Path, host: str
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # taken, but nobody listens
        url = f"http://{host}:{closed.getsockname()[1]}/file.bin"
        known = {"set": Source("set", "", "", "", (Download(file("file.bin", CONTENT), (url,)),))}
        with pytest.raises(InputError, match=rf"{url} could not be reached.*by hand") as caught:
            fetch("set", tmp_path, catalogue=known)
    assert len(str(caught.value)) < 400
    assert names(tmp_path) == set()


def test_where_its_files_cannot_be_had_a_set_is_made_from_another(
    server: Server, tmp_path: Path
) -> None:
    zipped = Download(file("file.zip", b"zip"), (server.url("missing"),))
    known = one(server, "whole") | {"made": Source("made", "Made", "", "", (zipped,), "set")}
    fetched = fetch("made", tmp_path, catalogue=known)
    assert fetched.source.name == "set"
    assert fetched.new == known["set"].files
    assert re.search("Made will be re-created from Set, for .* answered 404", fetched.notes[0])
    ((missing, state),) = verify("made", tmp_path, catalogue=known)
    assert re.search(
        "missing; without it, Made is re-created", in_words(known["made"], missing, state)
    )
    (tmp_path / "file.zip").write_bytes(b"zip")
    assert fetch("made", tmp_path, catalogue=known).source.name == "made"


def test_verify_in_words_and_a_set_without_files(tmp_path: Path) -> None:
    assert verify("digits", tmp_path) == []
    assert fetch("digits", tmp_path).new == ()
    ((first, state), *others) = verify("mnist", tmp_path)
    source = fetch("digits", tmp_path).source
    assert len(others) == 3
    assert in_words(source, first, state).endswith("gz is missing; fetch digits to get it")
    assert in_words(source, first, State.OFFICIAL).endswith("gz is the official file")
    with pytest.raises(InputError, match="found 'minst'; did you mean 'mnist'"):
        verify("minst", tmp_path)
    with pytest.raises(InputError, match="found 'minst'; did you mean 'mnist'"):
        fetch("minst", tmp_path)


def test_a_folder_that_cannot_be_written_to_is_named(server: Server, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("a file, not a folder")
    for folder in (tmp_path / "plain" / "data", Path("/proc/nowhere")):
        with pytest.raises(
            InputError, match=rf"must be writeable .* found at {folder}: .*DOS_DATA"
        ):
            fetch("set", folder, catalogue=one(server, "whole"))


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """As on a full disk, no file can grow beyond ``size`` bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_on_a_full_disk_only_the_part_remains(server: Server, tmp_path: Path) -> None:
    known = one(server, "range")
    with (
        full_disk(HALF),
        pytest.raises(InputError, match=r"have room, found at .*; free some space"),
    ):
        fetch("set", tmp_path, catalogue=known)
    assert names(tmp_path) == {"set/file.bin.part"}
    fetch("set", tmp_path, catalogue=known)
    assert server.asked[-1] == ("range", f"bytes={HALF}-")
    assert names(tmp_path) == {"set/file.bin"}


MEMBERS = {"set/a.bin": b"a" * HALF, "set/b.bin": b"b", "set/unwanted.bin": b"c"}


def archived(server: Server, *, link: bool = False) -> dict[str, Source]:
    """A catalogue of two members of an archive, which may hold a link too."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for path, content in MEMBERS.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        if link:
            member = tarfile.TarInfo("set/link")
            member.type, member.linkname = tarfile.SYMTYPE, "/etc"
            tar.addfile(member)
    server.content["all.tar.gz"] = archive.getvalue()
    members = tuple(file(path, MEMBERS[path]) for path in ("set/b.bin", "set/a.bin"))
    whole = file("all.tar.gz", archive.getvalue())
    only = Download(whole, (server.url("range", "all.tar.gz"),), members)
    return {"set": Source("set", "Set", "", "", (only,))}


def test_the_named_members_of_an_archive_are_kept(server: Server, tmp_path: Path) -> None:
    known = archived(server)
    fetched = fetch("set", tmp_path, catalogue=known)
    assert fetched.new == known["set"].files
    assert re.search("came out of all.tar.gz, which was removed afterwards", fetched.notes[0])
    assert names(tmp_path) == {"set/a.bin", "set/b.bin"}
    assert [state for _, state in verify("set", tmp_path, catalogue=known)] == 2 * ["official"]
    fetch("set", tmp_path, catalogue=known)
    assert len(server.asked) == 1


def test_members_that_are_there_stay_as_they_are(server: Server, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.bin").write_bytes(b"mine")
    fetched = fetch("set", tmp_path, catalogue=archived(server))
    assert [each.path for each in fetched.new] == ["set/b.bin"]
    assert re.search("set/a.bin differs", fetched.notes[0])
    assert (tmp_path / "set" / "a.bin").read_bytes() == b"mine"


def test_an_archive_put_there_by_hand_is_used_and_kept(server: Server, tmp_path: Path) -> None:
    known = archived(server)
    archive = tmp_path / "all.tar.gz"
    archive.write_bytes(b"something else")
    with pytest.raises(
        InputError, match=r"tar.gz must have the checksum md5:.*, found md5:.*delete"
    ):
        fetch("set", tmp_path, catalogue=known)
    archive.write_bytes(server.content["all.tar.gz"])
    fetched = fetch("set", tmp_path, catalogue=known)
    assert re.search("was there and is no longer needed", fetched.notes[0])
    assert names(tmp_path) == {"all.tar.gz", "set/a.bin", "set/b.bin"}
    assert server.asked == []


def test_an_archive_with_a_link_leaves_nothing_behind(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="plain files below the data folder, found 'set/link'"):
        fetch("set", tmp_path, catalogue=archived(server, link=True))
    assert names(tmp_path) == set()


def test_a_disk_too_full_to_unpack_keeps_the_archive(server: Server, tmp_path: Path) -> None:
    known = archived(server)
    with full_disk(HALF - 1), pytest.raises(InputError, match="must be writeable and have room"):
        fetch("set", tmp_path, catalogue=known)
    assert names(tmp_path) == {"all.tar.gz.part"}
    fetch("set", tmp_path, catalogue=known)
    assert len(server.asked) == 1  # it is not fetched a second time
    assert names(tmp_path) == {"set/a.bin", "set/b.bin"}
