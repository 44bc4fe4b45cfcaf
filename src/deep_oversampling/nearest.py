"""The nearest points of a class to each of its points: exact, on any device, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

__all__ = ["Classes", "budget", "nearest", "padded", "scale_of"]

_GROUP = 8  # columns of which only the smallest is looked at first
_FEW = 256  # columns that are not worth grouping
_SPARE = 4  # on the shortlist beyond k: with fewer, the proof often fails
_LIST = 96  # bytes for someone on a shortlist while it is put in order
_CACHE = 32  # MiB, on a CPU: a larger block has left the caches when it is read again
_ROWS = 64  # of a block at least, even so: for every block the whole class is read


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of similar size that are searched together: the rows of one padded table."""

    v: Tensor  # (m, d)
    scale: float  # of v, from `scale_of`
    members: Tensor  # (c, M)  rows of v, M from `padded`
    counts: Tensor  # (c,)    m_j: what follows the first m_j in a row is padding
    k: Tensor  # (c,)    1 … m_j - 1
    most: int  # K, the largest k

    @property
    def real(self) -> Tensor:  # (c, M)  False where padded
        columns = torch.arange(self.members.shape[1], device=self.members.device)
        return columns < self.counts.unsqueeze(1)

    def only(self, j: int) -> Classes:
        one = slice(j, j + 1)
        return Classes(
            self.v, self.scale, self.members[one], self.counts[one], self.k[one], self.most
        )


def nearest(
    classes: Classes,
    limit: int,  # bytes, from `budget`
    asked: Tensor | None = None,  # (q,)  columns of the classes whose nearest are wanted; all: M
) -> Tensor:  # (c, q, K)  rows of v, nearest first: the first k_j, and none for padding
    """The nearest by exact differences, of which few have to be computed.

    A product of matrices in single precision gives a lower bound of every distance (`_Bounds`);
    the smallest bounds make a shortlist. Where they are further apart than they can be wrong, the
    list is in order. Elsewhere it is put in order by exact distances, and the k nearest are on it
    if the k-th is not beyond the last bound, because those that are not on it have greater ones.
    Points for which even that fails are searched again, with bounds in double precision and lists
    that grow until nobody is missing.
    """
    size = classes.members.shape[1]
    width = min(classes.most + _SPARE, size)
    with _full_precision(classes.v.device):
        if asked is None:
            asked = torch.arange(size, device=classes.v.device)
        bounds = _Bounds(classes, torch.float32, limit)
        index, last, doubtful = bounds.shortlist(asked, width, limit)
        del bounds  # and with it a copy of the class
        found = index[..., : classes.most]
        j, i = doubtful.nonzero(as_tuple=True)  # class, and place among those asked
        proven, half = torch.empty_like(j, dtype=torch.bool), limit // 2  # lists and their points
        for part in _parts(len(j), _LIST * width, half):
            j_, i_ = j[part], i[part]
            listed = index[j_, i_], last[j_, i_]
            found[j_, i_], proven[part] = _by_distance(classes, j_, asked[i_], *listed, half)
        left = (~proven).nonzero().flatten()
        j, i = j[left], i[left]
        for one in j.unique().tolist():
            rows = i[j == one]
            found[one, rows] = _search_again(classes.only(one), asked[rows], 4 * width, half)
    return classes.members.unsqueeze(1).expand(-1, len(asked), -1).gather(2, found)


def _search_again(
    classes: Classes,  # a single one
    rows: Tensor,  # (n,)  columns
    width: int,
    limit: int,
) -> Tensor:  # (n, K)
    bounds = _Bounds(classes, _exact(classes.v), limit)
    found = rows.new_empty(len(rows), classes.most)
    proven = torch.zeros_like(rows, dtype=torch.bool)
    while len(left := (~proven).nonzero().flatten()):
        width = min(width, classes.members.shape[1])
        for part in _parts(len(left), _LIST * width, limit):
            here = left[part]
            i, j = rows[here], torch.zeros_like(here)
            index, last, _ = bounds.shortlist(i, width, limit)
            found[here], proven[here] = _by_distance(classes, j, i, index[0], last[0], limit)
        width *= 4
    return found


def _by_distance(
    classes: Classes,
    j: Tensor,  # (n,)
    i: Tensor,  # (n,)
    index: Tensor,  # (n, width)  shortlists of the members i of the classes j
    last: Tensor,  # (n,)        who is not on the list is at least so far
    limit: int,
) -> tuple[Tensor, Tensor]:  # (n, K), (n,)
    """The first of the lists in the order of the exact distances, and whether that is proven."""
    own = classes.members[j, i].unsqueeze(1).expand_as(index)
    distances = _distances(classes, own, classes.members[j.unsqueeze(1), index], limit)
    nobody = (index == i.unsqueeze(1)) | (index >= classes.counts[j].unsqueeze(1))
    distances, order = distances.masked_fill_(nobody, torch.inf).sort(1)
    kth = distances.gather(1, classes.k[j].unsqueeze(1) - 1).squeeze(1)
    # A list of everyone ends with the point itself, at infinity: then there is nothing to prove.
    return index.gather(1, order[:, : classes.most]), ~(kth > last) | (kth == 0)


def _distances(classes: Classes, a: Tensor, b: Tensor, limit: int) -> Tensor:
    """‖v_a − v_b‖² by differences, for pairs of rows of v, scaled."""
    v, exact = classes.v, _exact(classes.v)
    a, b, shape = a.flatten(), b.flatten(), b.shape
    result = torch.empty(len(b), dtype=exact, device=v.device)
    for part in _parts(len(b), 2 * v.shape[1] * exact.itemsize, limit):
        difference = v.index_select(0, a[part]).to(exact)
        difference -= v.index_select(0, b[part])
        torch.sum(difference.mul_(classes.scale).square_(), 1, out=result[part])
    return result.view(shape)


class _Bounds:
    """Lower bounds of the squared distances within classes, from products of matrices.

    ‖a − b‖² = ‖a‖² − 2ab + ‖b‖² is fast but loses small distances beside large norms. How much it
    can lose is known. In units of ε (‖a‖² + ‖b‖²), where 1 + 2ε is the number after 1, it is for

    - d + 1 products, summed in any order, (d + 1)ε (2|a||b| + ‖b‖²): at most 2(d + 1);
    - the norms, roots of sums of squares, squared: d + 3;
    - a and b themselves, one rounding each when they are centred: 4;
    - what is done with the sum, adding ‖a‖² and taking this error off: 3;

    together less than 3(d + 16). The distances that the bounds are compared with have their own
    ε′ and are wrong by less than 2(d + 16)ε′ (‖a‖² + ‖b‖²). Terms of second order are covered by
    n/(1 − n), and underflow by a few of the smallest normal numbers. As all of this is a share of
    ‖a‖² and a share of ‖b‖², it is taken off the norms, and the product itself is the bound.
    """

    def __init__(self, classes: Classes, dtype: torch.dtype, limit: int) -> None:
        v, self.k, (c, size) = classes.v, classes.k, classes.members.shape
        self.d, limits, exact = v.shape[1], torch.finfo(dtype), torch.finfo(_exact(v))
        wide, centre = torch.promote_types(v.dtype, dtype), None
        # a column more for the norms, and up to 3 of zeros: products are fast in whole 16 bytes
        self.points = v.new_empty(c, size, self.d + 4 - self.d % 4, dtype=dtype)
        self.points[..., self.d :] = 0
        for part in _parts(size, c * self.d * wide.itemsize, limit):
            x = v.index_select(0, classes.members[:, part].flatten()).view(c, -1, self.d)
            x = x.to(wide).mul_(classes.scale)
            # of the first part: norms must be small, not the least; the proof holds with any centre
            centre = x.mean(1, keepdim=True) if centre is None else centre
            self.points[:, part, : self.d] = x.sub_(centre)
        norms = torch.linalg.vector_norm(self.points, dim=2).square_()
        n = (self.d + 16) * (1.5 * limits.eps + exact.eps)
        self.error = n / (1 - n) * norms + 8 * (self.d + 16) * limits.tiny  # (c, M)
        self.norms = norms - self.error  # (c, M)
        self.real = classes.real
        self.points[..., self.d] = self.norms.where(self.real, torch.inf)  # far from everyone

    def shortlist(
        self,
        rows: Tensor,  # (n,)  columns of the classes
        width: int,
        limit: int,  # bytes
    ) -> tuple[Tensor, Tensor, Tensor]:  # (c, n, width), (c, n), (c, n)
        """The columns with the smallest bounds, the last of these bounds, and doubts.

        The first k of a list are in order beyond doubt if each of them is nearer than the next,
        however wrong the bounds are.
        """
        c, size, _ = self.points.shape
        index = rows.new_empty(c, len(rows), width)
        last = self.norms.new_empty(c, len(rows))
        doubtful = self.real.new_empty(c, len(rows))
        matter = torch.arange(width - 1, device=rows.device) < self.k.view(c, 1, 1)
        parts = list(_parts(len(rows), c * self._row(width), limit))
        block = self.points.new_empty(c * parts[0].stop * size)  # the first is the largest
        for here in parts:
            part = rows[here]
            left = self.points.index_select(1, part).mul_(-2)
            left[..., self.d] = 1
            bounds = block[: c * len(part) * size].view(c, len(part), size)
            torch.bmm(left, self.points.mT, out=bounds)  # ‖b‖² − 2ab; no autocast with an out
            bounds.scatter_(2, part.view(1, -1, 1).expand(c, -1, 1), torch.inf)  # itself, by index
            smallest, columns = _smallest(bounds, width)
            smallest += self.norms[:, part].unsqueeze(2)
            wrong = self.error.unsqueeze(1).expand(c, len(part), size).gather(2, columns[..., :-1])
            wrong += self.error[:, part].unsqueeze(2)
            close = smallest[..., 1:] - smallest[..., :-1] < 2 * wrong
            index[:, here], last[:, here] = columns, smallest[..., -1]
            doubtful[:, here] = (close & matter).any(2) & self.real[:, part]
        return index, last, doubtful

    def _row(self, width: int) -> int:
        """The bytes for a row of bounds, minima of groups, candidates and points."""
        _, size, columns = self.points.shape
        item = self.points.element_size()
        return (size * 8 // 7 + 2 * columns) * item + width * (3 * _GROUP * item + _LIST)


def _smallest(
    values: Tensor,  # (…, n)
    k: int,
    *,
    in_order: bool = True,
) -> tuple[Tensor, Tensor]:  # (…, k), (…, k)
    """The k smallest and their columns, as ``topk`` finds them, but fast on long rows.

    Every group of columns gives its minimum. The k smallest values are in the k groups with the
    smallest minima, so only these are looked into; and the minima are searched likewise.
    """
    *lead, n = values.shape
    if n <= max(_FEW, _GROUP * k):
        return values.topk(k, largest=False, sorted=in_order)
    if n % _GROUP:
        values = pad(values, (0, -n % _GROUP), value=torch.inf)
    grouped = values.view(*lead, _GROUP, -1)  # a group is a column of this
    groups = _smallest(grouped.amin(-2), k, in_order=False)[1]
    candidates = grouped.gather(-1, groups.unsqueeze(-2).expand(*lead, _GROUP, k))
    smallest, which = candidates.view(*lead, _GROUP * k).topk(k, largest=False, sorted=in_order)
    return smallest, which // k * grouped.shape[-1] + groups.gather(-1, which % k)


def padded(size: int) -> int:
    """The size that groups, and groups of groups, fill."""
    return size if size <= _FEW else math.ceil(size / _GROUP**2) * _GROUP**2


def budget(device: torch.device, memory: int, size: int) -> int:  # MiB -> bytes
    """For the blocks of a class of so many."""
    if device.type != "cpu":
        return memory * 2**20
    return min(memory * 2**20, max(_CACHE * 2**20, _ROWS * size * 5))  # 4 bytes, minima of groups


def _parts(n: int, size: int, limit: int) -> Iterator[slice]:
    """n rows of so many bytes, in parts that stay within the limit: at least one row each."""
    step = max(1, limit // size)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def scale_of(v: Tensor) -> float:
    """A power of two that keeps squares from over- and underflow, and changes no digit."""
    largest = max(abs(one) for one in torch.stack([v.amin(), v.amax()]).tolist())
    limit = 1020 if v.dtype == torch.float64 else 124
    return 2.0 ** -min(max(math.frexp(largest)[1], -limit), limit)


def _exact(v: Tensor) -> torch.dtype:
    return torch.float32 if v.device.type == "mps" else torch.float64  # mps has no other


@contextmanager
def _full_precision(device: torch.device) -> Iterator[None]:
    """Single precision means it: the bounds do not hold with TF32 or bfloat16 in its place."""
    libraries = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    switch = libraries.matmul
    before = switch.fp32_precision
    switch.fp32_precision = "ieee"
    try:
        yield
    finally:
        switch.fp32_precision = before
