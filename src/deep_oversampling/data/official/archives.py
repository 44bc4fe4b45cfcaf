"""Members of a downloaded archive put to their places, and the checksums of files."""

from __future__ import annotations

import gzip
import hashlib
import posixpath
import shutil
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

from ...errors import InputError
from .catalogue import File

__all__ = ["checksum", "unpack"]


def checksum(path: Path, file: File) -> str:
    """The checksum of what lies at ``path``, of the kind that is known of ``file``."""
    algorithm = file.hash.partition(":")[0]
    with path.open("rb") as content:
        return f"{algorithm}:{hashlib.file_digest(content, algorithm).hexdigest()}"


def unpack(
    archive: Path, files: list[File], place: Path, progress: Callable[[str, int, int | None], None]
) -> None:
    """Extract these members: all of them, checked, or none."""
    parts = {file: place / f"{file.path}.part" for file in files}
    try:
        with tarfile.open(archive) as tar:
            members = {posixpath.normpath(_safe(member).name): member for member in tar}
            for file in files:
                if file.path not in members:
                    raise InputError(f"{archive} must hold {file.path}, found no such member")
            # in the archive's order: going back means to decompress it from its beginning
            for file in sorted(files, key=lambda file: members[file.path].offset):
                _check_size(members[file.path], file, archive)
                _extract(tar, members[file.path], parts[file])
                progress(file.path, members[file.path].size, file.size)
                found = checksum(parts[file], file)
                if found != file.hash:
                    raise InputError(
                        f"{file.path} must have the checksum {file.hash}, found {found} in "
                        f"{archive.name}; fetch again, or put the file into {place} by hand"
                    )
        for file, part in parts.items():
            part.replace(place / file.path)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{archive} must be a readable tar archive: {error}") from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _safe(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A folder or plain file below the place it is unpacked to, or an error.

    Stricter than `tarfile.data_filter`, which makes absolute names relative and lets links pass
    that stay inside; and unlike there, a folder that the user made a link stays usable.
    """
    steps = member.name.replace("\\", "/").split("/")
    inside = steps[0] != "" and ".." not in steps
    if inside and (member.isreg() or member.isdir()):
        return member
    raise InputError(
        "members of an archive must be plain files below the data folder, found "
        f"{member.name!r}{'' if inside else ', which is outside'}"
    )


def _check_size(member: tarfile.TarInfo, file: File, archive: Path) -> None:
    """Before the disk is filled with what has another checksum anyway."""
    if member.isreg() and file.size is not None and member.size > file.size:
        raise InputError(
            f"{file.path} must have {file.size:,} bytes, found {member.size:,} in {archive.name}; "
            "fetch again"
        )


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, part: Path) -> None:
    content = tar.extractfile(member)
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as out:
        if content is not None:  # a folder has none
            shutil.copyfileobj(content, out)
