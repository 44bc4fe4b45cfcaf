"""𝒱 as a round needs it: v of the classes that have neighbours, and sums over all samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .moments import Moments, Spread, moments_of
from .network import Network, evaluating, in_chunks, not_finite
from .peers import Peers
from .samples import Samples

__all__ = ["Embeddings", "embed_classes"]

_BLOCK = 8192  # samples whose embeddings are added up at once


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Embeddings of m samples, of which those of some classes are kept."""

    rows: Tensor  # (s,)    the samples whose embeddings are kept, in their order
    v: Tensor  # (s, d)
    moments: Moments  # of all m

    @classmethod
    def of(cls, v: Tensor, samples: Samples, wanted: Tensor) -> Embeddings:  # (m, d), (n,)
        """Of embeddings that are all at hand; a copy only where some are left out."""
        rows = _rows(samples, wanted)
        kept = v if len(rows) == len(v) else v[rows]
        return cls(rows, kept, moments_of(v, samples.y, samples.n))

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
    peers: Peers | None = None,  # with which the samples are shared
) -> Embeddings:
    """v_i = f(x_i) for every sample, as `embed` computes it, a block at a time."""
    peers, n, m = peers or Peers(), samples.n, len(samples)
    rows, parts = _rows(samples, wanted), peers.parts(m)
    place, part = rows.cpu(), peers.part_of(parts)  # the device is not asked for every block
    bounds = [torch.searchsorted(place, torch.tensor([p.start, p.stop])).tolist() for p in parts]
    start, stop = peers.part_of(bounds)
    v, found, at, bad = None, None, part.start, torch.tensor(m, device=network.device)
    with evaluating(network):
        for block in _blocks(in_chunks(network, network.embed, samples.x, part)):
            if v is None or found is None:
                v = block.new_empty(stop - start, block.shape[1])
                found = Moments.starting(block[0], n)
            found.add(block, samples.y[at : at + len(block)])
            ends = torch.tensor([at, at + len(block)])
            first, last = torch.searchsorted(place, ends).tolist()
            v[first - start : last - start] = block[rows[first:last].to(block.device) - at]
            bad = torch.minimum(bad, _first_bad(block, m, at))
            at += len(block)
    assert v is not None and found is not None  # there is a sample at least
    if (row := -peers.most(-int(bad))) < m:  # all must know, or those who do not would wait
        raise not_finite(row)
    if len(parts) > 1:
        everyone = peers.collected(found.flat().unsqueeze(0), [1] * len(parts))
        found = Moments.joined(list(everyone), n)
    return Embeddings(rows, peers.collected(v, [b - a for a, b in bounds]), found)


def _rows(samples: Samples, wanted: Tensor) -> Tensor:  # (s,)
    return wanted.to(samples.y.device)[samples.y].nonzero().flatten()


def _blocks(chunks: Iterator[Tensor]) -> Iterator[Tensor]:
    """Chunks as they were computed, some of them together."""
    waiting: list[Tensor] = []
    for chunk in chunks:
        waiting.append(chunk)
        if sum(map(len, waiting)) >= _BLOCK:
            yield torch.cat(waiting)
            waiting = []
    if waiting:
        yield torch.cat(waiting)


def _first_bad(block: Tensor, m: int, at: int) -> Tensor:  # ()
    """The first sample whose embedding is no number, m if there is none."""
    bad = ~block.isfinite().all(1)
    return torch.where(bad.any(), at + bad.long().argmax(), m)
