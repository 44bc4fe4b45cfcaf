"""Archives that mean harm or are damaged put nothing anywhere."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from deep_oversampling import InputError
from deep_oversampling.data.official.archives import checksum, unpack
from deep_oversampling.data.official.catalogue import File

GOOD = b"good"


def file(path: str = "set/good.bin", content: bytes = GOOD, kind: str = "sha256") -> File:
    return File(path, f"{kind}:{hashlib.new(kind, content).hexdigest()}", len(content))


def plain(name: str, content: bytes = GOOD) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return member


def special(kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo("set/evil")
    member.type, member.linkname = kind, target
    return member


def pack(folder: Path, *members: tarfile.TarInfo, mode: str = "w:gz") -> Path:
    """An archive of a good member, and these after it."""
    path = folder / "all.tar.gz"
    with tarfile.open(path, mode) as tar:
        for member in (plain("set/good.bin"), *members):
            tar.addfile(member, io.BytesIO(GOOD) if member.size else None)
    return path


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def extract(archive: Path, *files: File) -> None:
    unpack(archive, list(files), archive.parent / "data", lambda *step: None)


EVIL = {
    "above": plain("../evil"),
    "above, hidden": plain("set/../../evil"),
    "absolute": plain("/tmp/evil"),
    "backslashes": plain("..\\evil"),
    "symbolic link outside": special(tarfile.SYMTYPE, "../../evil"),
    "symbolic link inside": special(tarfile.SYMTYPE, "good.bin"),
    "hard link": special(tarfile.LNKTYPE, "set/good.bin"),
    "character device": special(tarfile.CHRTYPE),
    "block device": special(tarfile.BLKTYPE),
    "pipe": special(tarfile.FIFOTYPE),
}


@pytest.mark.parametrize("member", EVIL.values(), ids=EVIL.keys())
def test_evil_members_are_named_and_nothing_is_extracted(
    tmp_path: Path, member: tarfile.TarInfo
) -> None:
    archive = pack(tmp_path, member)
    with pytest.raises(InputError, match="must be plain files below the data folder") as caught:
        extract(archive, file())
    assert repr(member.name) in str(caught.value)
    assert names(tmp_path) == {"all.tar.gz"}


def test_only_what_is_named_is_extracted(tmp_path: Path) -> None:
    folder = tarfile.TarInfo("set")
    folder.type = tarfile.DIRTYPE
    seen: list[tuple[str, int, int | None]] = []
    archive = pack(tmp_path, folder, plain("./set/also.bin"), plain("set/not.bin"))
    place = tmp_path / "data"
    unpack(archive, [file("set/also.bin"), file()], place, lambda *step: seen.append(step))
    assert names(place) == {"set", "set/good.bin", "set/also.bin"}
    assert (place / "set" / "also.bin").read_bytes() == GOOD
    assert seen == [("set/good.bin", 4, 4), ("set/also.bin", 4, 4)]  # in the archive's order


def test_a_folder_that_the_user_made_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "set").symlink_to(tmp_path / "elsewhere")
    extract(pack(tmp_path), file())
    assert (tmp_path / "elsewhere" / "good.bin").read_bytes() == GOOD


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (file("set/other.bin"), r"all.tar.gz must hold set/other.bin, found no such member"),
        (file("set/b.bin", b"other"), r"set/b.bin must have the checksum sha256:.*, found sha256:"),
        (file("set"), "set must have the checksum"),  # a folder of that name
    ],
    ids=["missing", "another", "folder"],
)
def test_all_members_are_extracted_or_none(tmp_path: Path, wanted: File, message: str) -> None:
    folder = tarfile.TarInfo("set")
    folder.type = tarfile.DIRTYPE
    archive = pack(tmp_path, plain("set/b.bin"), folder)
    with pytest.raises(InputError, match=message):
        extract(archive, file(), wanted)
    assert not {name for name in names(tmp_path / "data") if name != "set"}


@pytest.mark.parametrize("damage", ["text", "cut off", "stream", "garbage"])
def test_damaged_archives_are_refused(tmp_path: Path, damage: str) -> None:
    archive = pack(tmp_path)
    content = archive.read_bytes()
    changed = {
        "text": b"no archive",
        "cut off": content[:-20],
        "stream": content[:40] + bytes(9) + content[49:],
        "garbage": gzip.compress(gzip.decompress(content)[:600]) + b"garbage",
    }
    archive.write_bytes(changed[damage])
    with pytest.raises(InputError, match=r"all.tar.gz must be a readable tar archive"):
        extract(archive, file())
    assert names(tmp_path) == {"all.tar.gz"}


def test_archives_need_not_be_compressed(tmp_path: Path) -> None:
    extract(pack(tmp_path, mode="w"), file())
    assert names(tmp_path / "data") == {"set", "set/good.bin"}


@pytest.mark.parametrize("kind", ["md5", "sha1", "sha256"])
def test_checksums_are_of_the_kind_that_is_known(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(GOOD)
    assert checksum(path, file(kind=kind)) == file(kind=kind).hash
