"""One process at a time: a lock of the operating system, which ends with whoever holds it."""

from __future__ import annotations

import errno
import logging
import os
import sys
from pathlib import Path

from .errors import InputError

__all__ = ["Lock"]

_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)  # on some network drives
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # a link's file would be made elsewhere; not on Windows
_FAR = 2**62  # a byte that no file has: on Windows nobody else could read or write a locked one


class Lock:
    """Held from `take` to `release`; a process that is killed has let go of it.

    ``path`` is a file that is made for it, or, with ``keep``, one that is there for something
    else. Whoever comes second is refused at once and does not wait.
    """

    def __init__(self, path: Path, *, of: str, keep: bool = False) -> None:
        self._path, self._of, self._keep = path, of, keep
        self._handle: int | None = None

    def take(self) -> None:
        """Where the file system has no locks, nothing is locked, and a line in the log says so."""
        while self._handle is None:
            try:
                handle = os.open(self._path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
            except OSError as error:
                raise InputError(
                    f"{self._of} must be where it can be written to: {error}; choose another folder"
                ) from None
            try:
                _lock(handle)
            except OSError as error:
                os.close(handle)
                if error.errno not in _NO_LOCKS:
                    raise self._taken() from None
                logging.getLogger(__name__).warning(
                    "%s cannot be locked here: see to it that no other process uses it", self._of
                )
                return
            if _is_still(self._path, handle):
                self._handle = handle
            else:  # its owner has just deleted it
                os.close(handle)

    def release(self) -> None:
        if self._handle is None:
            return
        if not self._keep and sys.platform != "win32":  # which deletes nothing that is open
            self._path.unlink(missing_ok=True)  # while it is held: nobody takes what is going
        os.close(self._handle)
        self._handle = None

    def check_there(self) -> None:
        """Before something is written to the file: it may have been deleted, or the folder."""
        if self._handle is not None and not _is_still(self._path, self._handle):
            raise InputError(
                f"{self._of} must stay where it is while a process is at work, found that it was "
                "deleted or replaced meanwhile; the same command begins anew"
            )

    def __enter__(self) -> Lock:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _taken(self) -> InputError:
        return InputError(
            f"{self._of} must be used by one process at a time, found that another one is at work "
            "there; wait for its end, or choose another folder"
        )


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except (FileNotFoundError, NotADirectoryError):  # or its folder is gone
        return False
