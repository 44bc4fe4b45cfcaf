"""A training that can be killed at any moment and goes on as if nothing had happened.

Draws are made by name and round (`seeding`), so a round needs only the weights it starts from to
be made again, targets and all. A checkpoint inside a round holds these beside the current ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from .durable import read_checked, write_checked
from .errors import InputError, Stopped
from .history import History
from .locking import Lock
from .network import Network
from .optimizer_state import keep_state, put_state
from .peers import Peers
from .samples import Samples
from .snapshot_checks import Training, misfit
from .snapshots import Snapshot, Unfit, pack, unpack
from .training import Between, Halfway
from .views import View

__all__ = ["Checkpoints", "Keeping", "OnFound", "OnSteps", "described", "digest_of"]

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_KEPT = 2  # files: if the last is torn, there is one before it
_WHOLE, _ROWS = 64 << 20, 200  # bytes of samples that are all looked at; of more, so many rows


# told what a training goes on from: its rounds, and the weights after the last whole one
OnFound = Callable[[History, dict[str, Tensor]], None]
# told now and then how far a round is: its number from 1 on, its steps so far, and all of them
OnSteps = Callable[[int, int, int], None]


class Checkpoints:
    """A folder with the last two checkpoints of one training.

    One is written after every round and, within a round, every so many minutes. Where the
    folder holds a training of the same settings on the same samples, it goes on. One process at
    a time can use it.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        minutes: float = 10.0,
        on_found: OnFound | None = None,
        on_steps: OnSteps | None = None,
    ) -> None:
        if not minutes > 0:
            raise InputError(f"minutes must be a positive number, found {minutes}")
        self.folder, self._seconds = Path(folder), 60 * minutes
        self._written, self._stopping = time.monotonic(), False
        self._on_found, self.on_steps = on_found, on_steps
        self._settings: dict[str, Any] = {}
        self._begun = ""
        self._lock = Lock(self.folder / "lock", of=f"the checkpoint folder {self.folder}")
        self._peers = Peers()
        self._twin: _Twin | None = None
        self.snapshot: Snapshot | None = None

    def begin_also(self, folder: Path, *, rounds: int, **other: Any) -> None:
        """So many rounds are how another training begins, too: of ``other`` settings, kept there.

        They are trained once, and the other goes on from them.
        """
        self._twin = _Twin(folder, rounds, other)

    def stop(self) -> None:
        """Ask for an end after the current steps, with a checkpoint; a signal may call it."""
        self._stopping = True

    def open(
        self, settings: dict[str, Any], training: Training, *, peers: Peers | None = None
    ) -> Snapshot | None:
        """The newest checkpoint that is whole and fits; other settings are refused.

        Its weights take the place of those that the network has now, so others than at the first
        time change nothing; a line in the log says it, as they may be meant to begin another
        training.

        Of several processes the first alone uses the folder; the others are told what is in it.
        """
        self._peers = peers or self._peers
        self._settings = json.loads(json.dumps(settings))
        self._begun = digest_of(training.network)
        try:
            self.snapshot = self._peers.from_first(partial(self._look, training))
            if self.snapshot and self._on_found:
                self._on_found(self.snapshot.history, self.snapshot.whole)
        except BaseException:
            self.close()
            raise
        return self.snapshot

    def _look(self, training: Training) -> Snapshot | None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from None
        self._lock.take()
        return self._newest(training)

    def close(self) -> None:
        """Others may use the folder again."""
        self._lock.release()

    def _newest(self, training: Training) -> Snapshot | None:
        log, refused = logging.getLogger(__name__), list[Unfit]()
        for path in _files(self.folder)[::-1]:
            try:
                content = read_checked(path)
                snapshot = None if content is None else self._read(content, path, training)
            except OSError as error:
                raise self._unusable(error) from None
            except Unfit as error:  # the one before it may fit
                refused.append(error)
                continue
            if snapshot is None:
                log.warning("%s is not whole and is passed over", path)
                continue
            for reason in refused:
                log.warning("%s; it is passed over", reason)
            if snapshot.begun != self._begun:
                log.warning(
                    "the network has other weights than the training in %s began with; it goes on "
                    "with those of the checkpoint (for a new training, choose another folder)",
                    self.folder,
                )
                self._begun = snapshot.begun
            return snapshot
        if refused:
            raise refused[0]
        return None

    def _read(self, content: bytes, path: Path, training: Training) -> Snapshot:
        snapshot, theirs = unpack(content, path)
        _check_alike(self.folder, theirs, self._settings)
        if found := misfit(snapshot, training):
            raise Unfit(
                f"{path} must be a checkpoint of this training, found {found}; get an undamaged "
                "copy, or delete it to begin anew"
            )
        return snapshot

    def due(self) -> bool:
        """Whether it is time for one, or anybody wants to stop."""
        late = time.monotonic() - self._written >= self._seconds
        wish = self._peers.most(2 if self._stopping else int(late))
        self._stopping = wish == 2
        return wish > 0

    def write(self, snapshot: Snapshot) -> None:
        """To a new file, whole or not at all; older ones are deleted then."""
        self._peers.from_first(lambda: self._write(snapshot))
        self._written = time.monotonic()

    def _write(self, snapshot: Snapshot) -> None:
        snapshot.begun, twin = self._begun, self._twin
        try:
            if twin and twin.rounds == snapshot.rounds and snapshot.halfway is None:
                twin.folder.mkdir(exist_ok=True)  # first: a kill in between writes both again
                _put(twin.folder, pack(snapshot, self._settings | twin.other))
            _put(self.folder, pack(snapshot, self._settings))
        except OSError as error:
            raise self._unusable(error) from None
        if self._stopping:
            raise Stopped(
                f"stopped after {snapshot.rounds} rounds"
                + (f" and {snapshot.halfway.step} steps" if snapshot.halfway else "")
                + f"; the same call goes on from {self.folder}"
            )

    def _unusable(self, error: OSError) -> InputError:
        return InputError(
            f"{self.folder} must be a folder with room for checkpoints: {error}; earlier ones are "
            "as they were, and the same call goes on from there"
        )


@dataclass(frozen=True)
class _Twin:
    """Another training that begins with the same rounds."""

    folder: Path
    rounds: int
    other: dict[str, Any]  # settings


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("*.checkpoint") if p.stem.isdigit())


def _put(folder: Path, content: bytes) -> None:
    """A new file, whole or not at all; of those before it the last stays."""
    files = _files(folder)
    number = int(files[-1].stem) + 1 if files else 1
    write_checked(folder / f"{number:08}.checkpoint", content)
    for old in _files(folder)[:-_KEPT]:
        with contextlib.suppress(OSError):  # it does no harm
            old.unlink(missing_ok=True)


@dataclass(eq=False)
class Keeping:
    """What a training loop does with checkpoints: nothing, if there are none."""

    checkpoints: Checkpoints | None
    network: Network
    optimizer: Optimizer
    history: History
    best: dict[str, Tensor]  # weights that early stopping keeps; filled by it
    _start: dict[str, Tensor] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """Finished before."""
        snapshot = self.checkpoints.snapshot if self.checkpoints else None
        return snapshot.rounds if snapshot else 0

    def enter(self, t: int) -> Halfway | None:
        """Round t begins, its targets are made: from here on, or from where it was left."""
        if self.checkpoints is None:
            return None
        self._start = _copied(self.network.state_dict())
        snapshot = self.checkpoints.snapshot
        if snapshot is None or snapshot.rounds != t:
            return None
        self.network.load_state_dict(snapshot.weights)
        put_state(self.optimizer, snapshot.optimizer, snapshot.numbers)
        self.checkpoints.snapshot = None  # it has served
        return snapshot.halfway

    def within(self, t: int) -> Between | None:
        """To be called between steps, with what tells how far they are."""
        checkpoints = self.checkpoints
        if checkpoints is None:
            return None

        def between(halfway: Callable[[], Halfway], step: int, steps: int) -> None:
            if checkpoints.on_steps:
                checkpoints.on_steps(t + 1, step, steps)
            if checkpoints.due():
                checkpoints.write(self._snapshot(t, halfway()))

        return between

    def leave(self, t: int) -> None:
        """t rounds are finished."""
        if self.checkpoints:
            self.checkpoints.write(self._snapshot(t, None))

    def _snapshot(self, rounds: int, halfway: Halfway | None) -> Snapshot:
        tensors, numbers = keep_state(self.optimizer)
        start = self._start if halfway else None
        weights, best = _copied(self.network.state_dict()), _copied(self.best)
        return Snapshot(rounds, self.history, weights, tensors, numbers, halfway, start, best)


def described(value: Any) -> Any:
    """A setting in words and numbers that tell it from others, the same in every process."""
    if isinstance(value, partial):
        return [described(value.func), described(value.args), described(value.keywords)]
    if isinstance(value, dict):
        return {str(name): described(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [described(one) for one in value]
    if isinstance(value, Optimizer):
        groups = [{k: v for k, v in g.items() if k != "params"} for g in value.param_groups]
        return [type(value).__name__, *(described(group) for group in groups)]
    if isinstance(value, Samples):
        return _fingerprint(value)
    if isinstance(value, Network):
        shapes = {name: list(t.shape) for name, t in value.state_dict().items()}
        return hashlib.blake2b(repr((str(value), shapes)).encode(), digest_size=8).hexdigest()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__qualname__", None) or _ADDRESS.sub("", repr(value))


def _fingerprint(samples: Samples) -> str:
    """Of labels, shape and the samples, or some where they are many; it takes no time."""
    x, digest = samples.x, hashlib.blake2b(digest_size=8)
    few = x.shape.numel() * x.dtype.itemsize <= _WHOLE
    digest.update(repr((tuple(x.shape), str(x.dtype), samples.classes)).encode())
    rows = torch.arange(0, len(samples), 1 if few else max(1, len(samples) // _ROWS))
    some = x[rows.to(x.rows.device if isinstance(x, View) else x.device)]
    for tensor in (samples.y, some):
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def digest_of(network: Network) -> str:
    """Of all weights and buffers, to tell them from others."""
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in _copied(network.state_dict()).items():
        digest.update(repr((name, tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _copied(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: t.detach().cpu().clone().contiguous() for name, t in weights.items()}


def _check_alike(folder: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    if names:
        told = ", ".join(
            f"{n:.80} {theirs.get(n)!r:.80} instead of {ours.get(n)!r:.80}" for n in names
        )
        raise InputError(
            f"{folder} must hold checkpoints of the same training, found {told}; choose another "
            "folder, or the settings it was begun with"
        )
