"""The processes of one training: each has its share of the rows, all have the same weights."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib import metadata
from itertools import pairwise
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from .errors import DOSError, InputError, PeerLost

__all__ = ["Peers", "join_peers"]

T = TypeVar("T")

_WAIT = timedelta(hours=1)  # for others: one may decode pictures, or write a report, that long
_TOLD_BY_LAUNCHERS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Peers:
    """A process that is alone: there is nobody to ask, and nothing to wait for.

    `join_peers` gives it, or, where a launcher started several processes, one that knows the
    others. Then every method must be called by all of them, in the same order.
    """

    rank, size = 0, 1
    told = False  # an error that this process has raised is known to all

    @property
    def first(self) -> bool:
        """Whether it is the process that prints and writes."""
        return self.rank == 0

    @property
    def own(self) -> slice:
        """The rows of every batch that are this one's: every size-th, those with neighbours too."""
        return slice(self.rank, None, self.size)

    @property
    def total(self) -> Callable[[Tensor], Tensor] | None:
        """What adds up a tensor over all processes; None: it is whole already."""
        return None

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """In place, over all processes."""

    def parts(self, count: int) -> list[slice]:
        """Which of so many samples each process does; one part, if each is to do all of them."""
        return [slice(0, count)]

    def part_of(self, parts: Sequence[T]) -> T:
        """The one that is this process's."""
        return parts[self.rank % len(parts)]

    def collected(self, own: Tensor, sizes: Sequence[int]) -> Tensor:  # (own size, …) -> (all, …)
        """What all have made of their parts, in order; ``sizes`` says how long each is."""
        return own

    def gathered(
        self,
        rows: Callable[[slice], Tensor],  # of some of the samples
        count: int,  # of all samples
    ) -> Tensor:  # (count, …)
        """What a function makes of all samples, of which each process does a part."""
        parts = self.parts(count)
        return self.collected(rows(self.part_of(parts)), [p.stop - p.start for p in parts])

    def most(self, number: int) -> int:
        """The largest that a process has."""
        return number

    def from_first(self, make: Callable[[], T]) -> T:
        """What the first process makes, or why it could not, for all of them."""
        return make()

    def after_first(self, make: Callable[[], T], others: Callable[[], T] | None = None) -> T:
        """What the first makes; then the others make it too, or something else in its place."""
        return make()

    def as_first(self, tensors: Sequence[Tensor]) -> None:
        """Get the values that they have in the first process."""

    def check_alike(self, told: dict[str, Any]) -> None:
        """Refuse what is not the same in all processes, by name."""

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the others."""


def join_peers(device: torch.device | str | None = None) -> Peers:
    """The processes that torchrun, or another launcher that sets its variables, has started.

    Where a process group is there already (Ray Train makes one), it is used. Each process of a
    machine takes a GPU of its own, unless ``device`` is the CPU.

    >>> join_peers().size
    1
    """
    if not dist.is_available():
        return Peers()
    if dist.is_initialized():
        return _Group(made=False) if dist.get_world_size() > 1 else Peers()
    if _number("WORLD_SIZE", "1") < 2:
        return Peers()
    if missing := [name for name in _TOLD_BY_LAUNCHERS if name not in os.environ]:
        raise InputError(
            "a process of several must be told who it is and where the first is, found no "
            f"{' and no '.join(missing)} in the environment; start it with torchrun"
        )
    gpus = str(device or "auto").startswith(("auto", "cuda")) and torch.cuda.is_available()
    if gpus:
        torch.cuda.set_device(_own_gpu(str(device), torch.cuda.device_count()))
    with _lost_is_told():
        found = dist.rendezvous("env://", timeout=_WAIT)  # type: ignore[attr-defined]
        store, rank, size = next(found)
        # torchrun may keep its store when it starts processes again: the dead ones' addresses, too
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(attempt, store)  # type: ignore[attr-defined]
        backend = "nccl" if gpus else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_WAIT)
    group = _Group(made=True)
    if gpus:
        own = torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
        try:
            _check_apart(group.said_by_all(str(own)))
        except InputError:
            dist.destroy_process_group()
            raise
    return group


def _own_gpu(device: str, there: int) -> int:
    """Of those that this process can see, which may be its own one alone (SLURM does that)."""
    if ":" in device:
        raise InputError(
            "each of several processes takes a GPU of its own, so the device must be cuda, found "
            f"{device!r}; leave the number out"
        )
    local = _number("LOCAL_RANK", str(_number("RANK", "0") % there))
    if there > 1 and local >= there:
        raise InputError(
            f"there must be a GPU for each process of a machine, found {there} and process "
            f"{local + 1}; start fewer, or train on the CPU (device='cpu')"
        )
    return local if there > 1 else 0


def _check_apart(gpus: Sequence[str]) -> None:  # of each process
    """NCCL would fail, or wait for ever, where two processes have the same."""
    for rank, gpu in enumerate(gpus):
        if gpu in gpus[:rank]:
            raise InputError(
                "each of several processes must have a GPU of its own, found that processes "
                f"{gpus.index(gpu)} and {rank} share one; start as many as there are GPUs, set "
                "LOCAL_RANK, or train on the CPU (device='cpu')"
            )


class _Group(Peers):
    """Several processes; what is said between them goes by gloo, tensors of GPUs by NCCL."""

    def __init__(self, *, made: bool) -> None:
        self.rank, self.size, self._made = dist.get_rank(), dist.get_world_size(), made
        with _lost_is_told():
            self._words = dist.new_group(backend="gloo", timeout=_WAIT)

    @property
    def total(self) -> Callable[[Tensor], Tensor]:
        return self._summed

    def _summed(self, tensor: Tensor) -> Tensor:
        tensor = tensor.contiguous()
        with _lost_is_told():
            dist.all_reduce(tensor, group=self._group_for(tensor))
        return tensor

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        # as one: a step of a small network would else spend its time on greetings
        flat = self._summed(torch.cat([tensor.reshape(-1) for tensor in tensors]))
        for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def parts(self, count: int) -> list[slice]:
        if count < self.size:
            return [slice(0, count)]
        bounds = [count * rank // self.size for rank in range(self.size + 1)]
        return [slice(start, end) for start, end in pairwise(bounds)]

    def collected(self, own: Tensor, sizes: Sequence[int]) -> Tensor:
        if len(sizes) == 1 or not any(sizes):
            return own
        found = own.new_empty(sum(sizes), *own.shape[1:])
        # one after the other, in place: all_gather wants as many of each, and where one process has
        # all the rare samples, as in sorted data, everybody would have to make room for R times v
        with _lost_is_told():
            for rank, part in enumerate(found.split(list(sizes))):
                if rank == self.rank:
                    part.copy_(own)
                if len(part):
                    dist.broadcast(part, src=rank, group=self._group_for(part))
        return found

    def most(self, number: int) -> int:
        found = torch.tensor(number)
        with _lost_is_told():
            dist.all_reduce(found, dist.ReduceOp.MAX, group=self._words)
        return int(found)

    def from_first(self, make: Callable[[], T]) -> T:
        said: list[Any] = [None, None]
        if self.first:
            try:
                said[0] = make()
            except DOSError as error:
                said[1] = error
        with _lost_is_told():
            dist.broadcast_object_list(said, src=0, group=self._words)
        if said[1] is not None:
            self.told = True
            raise said[1]
        made: T = said[0]
        return made

    def after_first(self, make: Callable[[], T], others: Callable[[], T] | None = None) -> T:
        made: list[T] = []
        self.from_first(lambda: made.append(make()))
        return made[0] if self.first else (others or make)()

    def as_first(self, tensors: Sequence[Tensor]) -> None:
        with _lost_is_told():
            for tensor in tensors:  # as bytes: gloo does not know every type
                sent = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
                dist.broadcast(sent, src=0, group=self._group_for(sent))
                tensor.copy_(sent.view(tensor.dtype).view_as(tensor))

    def said_by_all(self, said: T) -> list[T]:
        everyone: list[Any] = [None] * self.size
        with _lost_is_told():
            dist.all_gather_object(everyone, said, group=self._words)
        return everyone

    def check_alike(self, told: dict[str, Any]) -> None:
        everyone = self.said_by_all(told | _versions())
        for rank, theirs in enumerate(everyone):
            other = [n for n in {**everyone[0], **theirs} if theirs.get(n) != everyone[0].get(n)]
            if other:
                self.told = True
                words = ", ".join(
                    f"{n} {theirs.get(n)!r} not {everyone[0].get(n)!r}" for n in other
                )
                raise InputError(
                    "all processes of a training must be given the same, found that process "
                    f"{rank} differs from process 0: {words}; start all with the same command, "
                    "data and releases"
                )

    def __exit__(self, *_: object) -> None:
        if self._made:
            dist.destroy_process_group()

    def _group_for(self, tensor: Tensor) -> dist.ProcessGroup | None:
        return self._words if tensor.device.type == "cpu" else None


@contextmanager
def _lost_is_told() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        first = str(error).strip().partition("\n")[0].partition(". ")[0]
        raise PeerLost(
            "every process of a training must stay until its end, found that one cannot be "
            f"reached any more ({first}); look for what it said last. With a checkpoint (--out) "
            "the same command goes on from there, with any number of processes"
        ) from None


def _number(name: str, default: str) -> int:
    text = os.environ.get(name, default)
    if not text.isdigit():
        raise InputError(
            f"{name} in the environment must be a whole number, as launchers set it, found {text!r}"
        )
    return int(text)


def _versions() -> dict[str, str]:
    """Releases that could make the same call mean something else."""
    try:
        own = metadata.version("deep-oversampling")
    except metadata.PackageNotFoundError:  # run from its source
        own = "not installed"
    return {
        "deep-oversampling": own,
        "torch": str(torch.__version__),
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }
