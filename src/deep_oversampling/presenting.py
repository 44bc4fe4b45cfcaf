"""A round's batches, gathered many steps at a time, for one training or for E of them at once.

A step is a few microseconds of arithmetic on a GPU, so what can be done for many steps in one go
(gathering rows, augmenting images) is not done in the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Protocol, TypeVar

import torch
from torch import Generator, Tensor

from .ahead import ahead
from .augmentation import Augmentation
from .oversampling import Overloaded
from .peers import Peers
from .pieces import Pieced
from .samples import Samples
from .trees import changed, joined, leaves
from .views import View

__all__ = ["Chunk", "Presentation", "Table", "at", "batches"]

T = TypeVar("T")

_ROOM = 2**25  # bytes of a chunk
_ROOM_OF_A_GPU = 2**28
_STEPS = 128  # of a chunk at most
_GRAIN = 4  # c, the rows with neighbours, is a multiple of it


class Table(Protocol):
    """What a round presents: 𝒳 (Samples) or 𝒵′ (Overloaded).

    Indexing with rows (…, b) gives the batches: a dataclass whose tensors all begin with (…).
    """

    def __len__(self) -> int: ...
    def __getitem__(self, rows: Tensor) -> Any: ...


def batches(
    size: int, batch_size: int, generator: Generator
) -> tuple[Tensor, Tensor]:  # (steps, b) rows, (steps, b) which of them count
    """Every row once, in random order, in batches of one shape, padded and masked.

    All have as many rows, but for one: where the last had the two that are left over, these alone
    would make a step, and at a large learning rate it is a blow (docs/finding.md).

    >>> rows, present = batches(7, 6, torch.Generator())
    >>> rows.shape, present.sum(1), sorted(rows[present].tolist())
    (torch.Size([2, 6]), tensor([4, 3]), [0, 1, 2, 3, 4, 5, 6])
    """
    steps = -(-size // batch_size)
    counts = torch.full((steps, 1), size // steps)
    counts[: size % steps] += 1
    present = torch.arange(batch_size) < counts
    order = torch.randperm(size, generator=generator)
    rows = order.repeat(-(-present.numel() // size))[: present.numel()].view_as(present)
    rows[present] = order
    return rows, present


@dataclass(frozen=True, eq=False)
class Chunk:
    """The batches of some steps."""

    batch: Any  # a tree of (steps, E, …)
    share: Tensor  # (steps, E, b)  of each row in its batch's mean; 0: padding
    awake: Tensor | None  # (E,)  members whose round is not over; None: all

    def __len__(self) -> int:
        return len(self.share)


def at(tree: T, step: int | Tensor) -> T:  # (steps, E, …) -> (E, …)
    """One step of it; a tensor of one number does not have to be read back to be followed."""
    if isinstance(step, Tensor):
        return changed(tree, lambda tensor: tensor.index_select(0, step).squeeze(0))
    return changed(tree, itemgetter(step))


class Presentation:
    """Every member's table once, in an order of its own; all draws are made here, on the CPU.

    ``tables[e]`` is None for a member that sits this round out.
    """

    def __init__(
        self,
        tables: Sequence[Table | None],
        *,
        batch_size: int,
        generators: Sequence[Generator],
        augment: Augmentation | None = None,
        images_per_row: int = 1,
        device: torch.device,
        steady: bool = False,  # shapes should be the same in every round
        peers: Peers | None = None,  # processes that share every batch, of one image a row
    ) -> None:
        self._augment, images = augment, images_per_row * batch_size
        self._peers = peers or Peers()
        own = self._peers.own
        some = next(table for table in tables if table is not None)
        rows, present, u = [], [], []
        for table, generator in zip(tables, generators, strict=True):
            drawn = batches(len(table or some), batch_size, generator)
            steps = len(drawn[0]) if table is not None else 0
            draws = augment.draws if augment else 0
            u.append(torch.rand(steps, images, draws, generator=generator))
            rows.append(drawn[0][:steps])
            present.append(drawn[1][:steps])
        self.steps = [len(each) for each in rows]
        self._tables, rows, present = _neighbours_first(
            [t or some for t in tables], rows, present, batch_size, steady, own
        )
        self._on_disk = any(map(_is_on_disk, self._tables))
        whole = max(self.steps)  # those who are done earlier wait, with rows that do not count
        self._indices = [_longer(each, whole)[:, own].to(device) for each in rows]
        self._u = [_longer(each, whole)[:, own].to(device) for each in u]
        there = torch.stack([_longer(each, whole) for each in present], 1)
        counts = there.sum(2, keepdim=True)
        self.rows = counts.squeeze(2).to(device)  # (steps, E)  of every batch, those that count
        self._share = (there / counts.clamp(min=1))[..., own].to(device)

    def __iter__(self) -> Iterator[Chunk]:
        return self.chunks()

    def chunks(self, done: int = 0, at_once: int | None = None) -> Iterator[Chunk]:
        """The steps after the first ``done``, at most so many of them at once."""
        spans = list(self._spans(done))
        each = (self._gathered(span) for span in spans)
        if self._on_disk:
            each = ahead(self._gathered, spans, self._share.device)
        with closing(each):  # and with it the thread that reads
            for span, parts in zip(spans, each, strict=True):
                batch, awake = self._joined(parts, span), self._awake(span.stop)
                size = at_once or len(span)
                for part in range(max(span.start, done), span.stop, size):
                    own = slice(part, min(part + size, span.stop))
                    within = slice(own.start - span.start, own.stop - span.start)
                    some = changed(batch, itemgetter(within))
                    yield Chunk(some, self._share[own], awake)

    def _spans(self, done: int) -> Iterator[range]:
        """Steps that are gathered together, as if none were done; all with the same members."""
        first = [table[rows[:1]] for table, rows in zip(self._tables, self._indices, strict=True)]
        one = sum(tensor.numel() * tensor.element_size() for tensor in leaves(tuple(first)))
        room = _ROOM if self._share.device.type == "cpu" else _ROOM_OF_A_GPU
        size = max(1, min(_STEPS, room // max(one, 1)))
        size = -self._peers.most(-size)  # who takes steps together must pause together
        start = 0
        for end in sorted(set(self.steps) - {0}):  # from end to end the same members are awake
            for begin in range(start, end, size):
                if done < min(begin + size, end):
                    yield range(begin, min(begin + size, end))
            start = end

    def _awake(self, step: int) -> Tensor | None:
        """Members that take the step before this one; None: all."""
        counts = torch.tensor(self.steps)
        return None if step <= int(counts.min()) else (counts >= step).to(self._share.device)

    def _gathered(self, span: range) -> tuple[Any, ...]:
        steps = slice(span.start, span.stop)
        return tuple(t[rows[steps]] for t, rows in zip(self._tables, self._indices, strict=True))

    def _joined(self, parts: tuple[Any, ...], span: range) -> Any:
        seen = list(parts)
        if self._augment:
            for e, (batch, u) in enumerate(zip(parts, self._u, strict=True)):
                drawn = u[span.start : span.stop].flatten(0, 1)
                flat = self._augment(batch.x.flatten(0, 1), drawn)
                seen[e] = batch.with_x(flat.view_as(batch.x))
        if len(seen) == 1:
            return changed(seen[0], lambda tensor: tensor.unsqueeze(1))
        return joined(seen, _side_by_side)


def _is_on_disk(table: Table) -> bool:
    samples = table.samples if isinstance(table, Overloaded | Pieced) else table
    return isinstance(samples, Samples) and isinstance(samples.x, View) and samples.x.on_disk


def _expected(share: float, batch_size: int) -> int:
    """Five deviations above the mean: hardly any batch has more, so rounds have one shape."""
    most = share * batch_size + 5 * math.sqrt(share * (1 - share) * batch_size)
    return min(batch_size, _GRAIN * math.ceil(most / _GRAIN))


def _neighbours_first(
    tables: list[Table],
    rows: list[Tensor],
    present: list[Tensor],
    batch_size: int,
    steady: bool,
    own: slice,  # rows of a batch that are gathered here
) -> tuple[list[Table], list[Tensor], list[Tensor]]:
    """Batches of 𝒵′ with the rows that have neighbours first, and no room for others' neighbours.

    Most rows are majority samples with k_j = 0. The order within a batch means nothing.
    """
    found = [table for table in tables if isinstance(table, Overloaded)]
    if len(found) < len(tables):
        return tables, rows, present
    most = 0
    for e, table in enumerate(found):
        has_neighbours = table.has_neighbours.cpu()
        if steady:
            most = max(most, _expected(float(has_neighbours.float().mean()), batch_size))
        for some, there in zip(rows[e].split(_STEPS), present[e].split(_STEPS), strict=True):
            crowded = has_neighbours[some]
            order = crowded.byte().argsort(dim=1, descending=True, stable=True)
            some.copy_(some.gather(1, order))
            there.copy_(there.gather(1, order))
            most = max(most, int(crowded.sum(1).max()) if len(crowded) else 0)
    heads = len(range(most)[own])
    return [replace(table, heads=heads) for table in found], rows, present


def _longer(tensor: Tensor, steps: int) -> Tensor:
    """Filled up with zeros: row 0, which is there in every table, and which does not count."""
    more = tensor.new_zeros(steps - len(tensor), *tensor.shape[1:])
    return torch.cat([tensor, more]) if len(more) else tensor


def _side_by_side(tensors: list[Tensor]) -> Tensor:  # E times (steps, …) -> (steps, E, …)
    """Members may differ in K: the shorter are padded, as their masks say."""
    if all(tensor.shape == tensors[0].shape for tensor in tensors):
        return torch.stack(tensors, 1)
    shape = [max(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True)]
    padded = tensors[0].new_zeros(shape[0], len(tensors), *shape[1:])
    for e, tensor in enumerate(tensors):
        there = tuple(slice(size) for size in tensor.shape[1:])
        padded[:, e][(slice(None), *there)] = tensor
    return padded
