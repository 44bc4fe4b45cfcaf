"""𝒱 as a round needs it: v of the classes that have neighbours, and sums over all samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Generator, Tensor

from .augmentation import Augmentation
from .moments import Moments, Spread, moments_of
from .network import Network, evaluating, in_chunks, not_finite
from .peers import Peers
from .samples import Samples

__all__ = ["Embeddings", "embed_classes"]

_BLOCK = 2**17  # numbers that are added up at once: they stay in the caches


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings of m samples, of which those of some classes are kept."""

    rows: Tensor  # (s,)    the samples whose embeddings are kept, in their order
    v: Tensor  # (s, d)
    moments: Moments  # of all m
    known: float | None = (
        None  # what g tells of the classes: 0 as by guessing, 1 all; None: unasked
    )

    @classmethod
    def of(cls, v: Tensor, samples: Samples, wanted: Tensor) -> Embeddings:  # (m, d), (n,)
        """Of embeddings that are all at hand; a copy only where some are left out."""
        rows = _rows(samples, wanted)
        kept = v if len(rows) == len(v) else v[rows]
        return cls(rows, kept, moments_of(v, samples.y, samples.n))

    def of_classes(self, wanted: Tensor, y: Tensor) -> Embeddings:  # (n,), (m,)
        """Those of fewer classes."""
        kept = wanted.to(y.device)[y[self.rows]]
        return replace(self, rows=self.rows[kept], v=self.v[kept.to(self.v.device)])

    @property
    def variance(self) -> Tensor:  # ()
        """Total variance of all m."""
        return self.moments.variance(self.v.dtype).to(self.v.device)

    @property
    def spread(self) -> Spread:
        """How compact all n classes are."""
        return self.moments.spread()


def embed_classes(
    network: Network,
    samples: Samples,
    wanted: Tensor,  # (n,)  classes whose embeddings are kept; the others are only added up
    *,
    augment: Augmentation | None = None,  # then v is that of changed copies, one of every sample
    generator: Generator | None = None,  # of the changes
    peers: Peers | None = None,  # with which the samples are shared
) -> Embeddings:
    """v_i = f(x_i) for every sample, as `embed` computes it, a block at a time; g looks on."""
    change = _changing(augment, len(samples), generator) if augment else None
    of = partial(in_chunks, network, network.embed, samples.x, change=change)
    peers, rows, m = peers or Peers(), _rows(samples, wanted), len(samples)
    parts, place = peers.parts(m), rows.cpu()  # a GPU is not waited for in every block
    bounds, part = [_within(place, one) for one in parts], peers.part_of(parts)
    (start, stop), at = peers.part_of(bounds), part.start
    v, moments, told = torch.empty(0), None, torch.empty(0)
    with evaluating(network):
        for block in _blocks(of(part)):
            if moments is None:
                moments = Moments.starting(block[0], samples.n)
                v = block.new_empty(stop - start, block.shape[1])
                told = torch.zeros_like(moments.count)  # samples of each class that g tells
            y = samples.y[at : at + len(block)]
            moments.add(block, y)
            told.index_add_(0, y.to(told.device), _right(network, block, y).to(told))
            first, last = _within(place, slice(at, at + len(block)))
            v[first - start : last - start] = block[rows[first:last].to(block.device) - at]
            at += len(block)
    assert moments is not None  # there is a sample at least
    if len(parts) > 1:
        sent = torch.cat([moments.flat(), told])
        everyone = peers.collected(sent.unsqueeze(0), [1] * len(parts))
        moments = Moments.joined(list(everyone[:, : -samples.n]), samples.n)
        told = everyone[:, -samples.n :].sum(0)
    if not bool(moments.total.isfinite().all()):
        _name_the_first(network, of, len(samples), part, peers)
    kept, known = peers.collected(v, [b - a for a, b in bounds]), _known(told, moments.count)
    return Embeddings(rows, kept, moments, known)


def _right(network: Network, v: Tensor, y: Tensor) -> Tensor:  # (b, d), (b,) -> (b,)
    with torch.no_grad():
        logits: Tensor = network.classifier(v)
    return logits.argmax(1) == y.to(v.device)


def _known(told: Tensor, counts: Tensor) -> float:  # (n,), (n,)
    """How far g is on the way from guessing to telling all, every class counting the same."""
    recall = float((told / counts.clamp(min=1)).mean())
    guessed = 1 / len(counts)
    return max(0.0, (recall - guessed) / (1 - guessed))


def _within(place: Tensor, part: slice) -> tuple[int, int]:
    """Which of the rows that are kept, in order, are in a part of all."""
    first, last = torch.searchsorted(place, torch.tensor([part.start, part.stop])).tolist()
    return first, last


def _rows(samples: Samples, wanted: Tensor) -> Tensor:  # (s,)
    return wanted.to(samples.y.device)[samples.y].nonzero().flatten()


def _blocks(chunks: Iterator[Tensor]) -> Iterator[Tensor]:
    """Chunks as they were computed, some of them together."""
    waiting: list[Tensor] = []
    for chunk in chunks:
        waiting.append(chunk)
        if sum(map(Tensor.numel, waiting)) >= _BLOCK:
            yield torch.cat(waiting)
            waiting = []
    if waiting:
        yield torch.cat(waiting)


def _changing(
    augment: Augmentation, m: int, generator: Generator | None
) -> Callable[[Tensor, slice], Tensor]:
    """Draws for all m on the CPU, so that they are the same for every device and process."""
    u = torch.rand(m, augment.draws, generator=generator)
    return lambda part, rows: augment(part, u[rows].to(part.device))


def _name_the_first(
    network: Network,
    of: Callable[[slice], Iterator[Tensor]],  # embeddings of some rows
    m: int,
    part: slice,
    peers: Peers,
) -> None:
    """Whose embedding is no number: they are made again, as nobody has kept them."""
    found, at = m, part.start
    with evaluating(network):
        for block in of(part):
            bad = (~block.isfinite().all(1)).nonzero()
            found = min(found, at + int(bad[0]) if len(bad) else found)
            at += len(block)
    found = -peers.most(-found)
    if found < m:
        raise not_finite(found)
