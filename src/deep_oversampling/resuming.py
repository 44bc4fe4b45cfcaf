"""A training that can be killed at any moment and goes on as if nothing had happened.

Draws are made by name and round (`seeding`), so a round needs only the weights it starts from to
be made again, targets and all. A checkpoint inside a round holds these beside the current ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from torch.optim import Optimizer

from .errors import InputError, Stopped
from .history import History, Round, Spread
from .network import Network
from .samples import Samples
from .schema import is_history, is_real, is_whole, or_none, table, table_of
from .training import Halfway
from .views import View

__all__ = ["Checkpoints", "Keeping", "Snapshot", "described"]

_VERSION = 1
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_CHECKSUM = 32  # bytes, after the rest
_KEPT = 2  # files: if the last is torn, there is one before it
_ROWS = 200  # of the samples, that tell them from others


@dataclass(eq=False)
class Snapshot:
    """All that a training needs to go on."""

    rounds: int  # finished
    history: History
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]  # "3.momentum_buffer": of the fourth parameter
    numbers: dict[str, float] = field(default_factory=dict)  # of its state that are no tensors
    halfway: Halfway | None = None  # within the round that follows
    start: dict[str, Tensor] | None = None  # the weights that it started from


class Checkpoints:
    """A folder with the last two checkpoints of one training.

    One is written after every round and, within a round, every so many minutes. Where the
    folder holds a training of the same settings on the same samples, it goes on.
    """

    def __init__(self, folder: Path | str, *, minutes: float = 10.0) -> None:
        if not minutes > 0:
            raise InputError(f"minutes must be a positive number, found {minutes}")
        self.folder, self._seconds = Path(folder), 60 * minutes
        self._written, self._stopping = time.monotonic(), False
        self._settings: dict[str, Any] = {}
        self.snapshot: Snapshot | None = None

    def stop(self) -> None:
        """Ask for an end after the current steps, with a checkpoint; a signal may call it."""
        self._stopping = True

    def open(self, settings: dict[str, Any]) -> Snapshot | None:
        """The newest checkpoint that is whole, if there is one; other settings are refused."""
        self._settings = json.loads(json.dumps(settings))
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self._files()[::-1]:
            found = _read(path)
            if found is None:
                logging.getLogger(__name__).warning(
                    "%s is not whole and is passed over; going on from the one before it", path
                )
                continue
            snapshot, theirs = found
            _check_alike(self.folder, theirs, self._settings)
            self.snapshot = snapshot
            break
        return self.snapshot

    def due(self) -> bool:
        return self._stopping or time.monotonic() - self._written >= self._seconds

    def write(self, snapshot: Snapshot) -> None:
        """To a new file, whole or not at all; older ones are deleted then."""
        number = int(self._files()[-1].stem) + 1 if self._files() else 1
        path = self.folder / f"{number:08}.checkpoint"
        part = path.with_suffix(".part")
        try:
            with part.open("wb") as file:
                file.write(_packed(snapshot, self._settings))
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            _sync_folder(self.folder)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise InputError(
                f"{self.folder} must be a folder with room for checkpoints: {error}; the earlier "
                "ones are as they were"
            ) from None
        for old in self._files()[:-_KEPT]:
            old.unlink(missing_ok=True)
        self._written = time.monotonic()
        if self._stopping:
            raise Stopped(
                f"stopped after {snapshot.rounds} rounds"
                + (f" and {snapshot.halfway.step} steps" if snapshot.halfway else "")
                + f"; the same call goes on from {self.folder}"
            )

    def _files(self) -> list[Path]:
        return sorted(p for p in self.folder.glob("*.checkpoint") if p.stem.isdigit())


@dataclass(eq=False)
class Keeping:
    """What a training loop does with checkpoints: nothing, if there are none."""

    checkpoints: Checkpoints | None
    network: Network
    optimizer: Optimizer
    history: History
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
        self._start = _copied(self.network)
        snapshot = self.checkpoints.snapshot
        if snapshot is None or snapshot.rounds != t:
            return None
        self.network.load_state_dict(snapshot.weights)
        _restore(self.optimizer, snapshot)
        self.checkpoints.snapshot = None  # it has served
        return snapshot.halfway

    def within(self, t: int) -> Callable[[Callable[[], Halfway]], None] | None:
        """To be called between steps, with what tells how far they are."""
        checkpoints = self.checkpoints
        if checkpoints is None:
            return None

        def between(halfway: Callable[[], Halfway]) -> None:
            if checkpoints.due():
                checkpoints.write(self._snapshot(t, halfway()))

        return between

    def leave(self, t: int) -> None:
        """t rounds are finished."""
        if self.checkpoints:
            self.checkpoints.write(self._snapshot(t, None))

    def _snapshot(self, rounds: int, halfway: Halfway | None) -> Snapshot:
        tensors, numbers = _state(self.optimizer)
        start = self._start if halfway else None
        weights = _copied(self.network)
        return Snapshot(rounds, self.history, weights, tensors, numbers, halfway, start)


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
    """Of labels, shape and some of the samples; it takes no time."""
    x, digest = samples.x, hashlib.blake2b(digest_size=8)
    digest.update(repr((tuple(x.shape), str(x.dtype), samples.classes)).encode())
    rows = torch.arange(0, len(samples), max(1, len(samples) // _ROWS))
    some = x[rows.to(x.rows.device if isinstance(x, View) else x.device)]
    for tensor in (samples.y, some):
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _copied(network: Network) -> dict[str, Tensor]:
    return {name: t.detach().cpu().clone().contiguous() for name, t in network.state_dict().items()}


def _state(optimizer: Optimizer) -> tuple[dict[str, Tensor], dict[str, float]]:
    tensors, numbers = {}, {}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for i, parameter in enumerate(parameters):
        for name, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                tensors[f"{i}.{name}"] = value.detach().cpu().clone().contiguous()
            elif isinstance(value, int | float):
                numbers[f"{i}.{name}"] = value
    return tensors, numbers


def _restore(optimizer: Optimizer, snapshot: Snapshot) -> None:
    """By hand: load_state_dict makes schedulers believe that no step was ever taken."""
    owners = [(p, group) for group in optimizer.param_groups for p in group["params"]]
    for key, value in {**snapshot.optimizer, **snapshot.numbers}.items():
        i, _, name = key.partition(".")
        parameter, group = owners[int(i)]
        if isinstance(value, Tensor) and value.ndim:
            value = torch.empty_like(parameter).copy_(value)
        elif isinstance(value, Tensor) and (group.get("capturable") or group.get("fused")):
            value = value.to(parameter.device)  # a count of steps that a kernel reads
        optimizer.state[parameter][name] = value


def _packed(snapshot: Snapshot, settings: dict[str, Any]) -> bytes:
    tensors = {f"weights.{name}": t for name, t in snapshot.weights.items()}
    tensors |= {f"optimizer.{name}": t for name, t in snapshot.optimizer.items()}
    tensors |= {f"start.{name}": t for name, t in (snapshot.start or {}).items()}
    halfway = snapshot.halfway
    if halfway:
        tensors |= {"halfway.losses": halfway.losses.cpu().contiguous()}
        tensors |= {f"random.{name}": t for name, t in halfway.random.items()}
    about = {
        "version": _VERSION,
        "settings": settings,
        "rounds": snapshot.rounds,
        "step": halfway.step if halfway else None,
        "history": snapshot.history.to_dict(),
        "numbers": snapshot.numbers,
    }
    content = save(tensors, {"about": json.dumps(about)})
    return content + hashlib.blake2b(content, digest_size=_CHECKSUM).digest()


def _read(path: Path) -> tuple[Snapshot, dict[str, Any]] | None:
    """None where it is torn."""
    data = path.read_bytes()
    content, checksum = data[:-_CHECKSUM], data[-_CHECKSUM:]
    if hashlib.blake2b(content, digest_size=_CHECKSUM).digest() != checksum:
        return None
    try:
        size = int.from_bytes(content[:8], "little")
        about = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["about"])
        if not _is_about(about):
            raise ValueError("values are missing, or of another type than they must be")
        if about["version"] > _VERSION:
            raise InputError(
                f"{path} must be a checkpoint that this release can read, found version "
                f"{about['version']} instead of {_VERSION}; use the release that wrote it"
            )
        return _snapshot(about, load(content)), about["settings"]
    except InputError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} must be a checkpoint of a training, found: {error!r}") from None


_is_about = table(
    **dict.fromkeys(("version", "rounds"), is_whole),
    step=or_none(is_whole),
    settings=lambda value: isinstance(value, dict),
    numbers=table_of(is_real),
    history=is_history,
)


def _snapshot(about: dict[str, Any], tensors: dict[str, Tensor]) -> Snapshot:
    parts: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        parts.setdefault(kind, {})[rest] = tensor
    told = about["history"]
    history = History([Round(**r) for r in told["rounds"]], [Spread(**s) for s in told["spreads"]])
    halfway = None
    if about["step"] is not None:
        halfway = Halfway(about["step"], parts["halfway"]["losses"], parts["random"])
    return Snapshot(
        about["rounds"],
        history,
        parts["weights"],
        parts.get("optimizer", {}),
        about["numbers"],
        halfway,
        parts.get("start"),
    )


def _check_alike(folder: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
    if names:
        told = ", ".join(f"{n} {theirs.get(n)!r} instead of {ours.get(n)!r}" for n in names)
        raise InputError(
            f"{folder} must hold checkpoints of the same training, found {told}; choose another "
            "folder, or the settings it was begun with"
        )


def _sync_folder(folder: Path) -> None:
    """So that the new name survives a loss of power; not every system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
