"""The paper a second time: its sums and loops over single samples, slow on purpose, float64.

Nothing here is shared with the package. Names follow the paper; R-numbers are the readings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Instance:
    """z_i^(j) = (x_i, y_i, 𝒩(x_i), w): the members are indices, the first is i itself (R1)."""

    i: int
    members: list[int]
    w: list[float]


def squared_distance(a: Tensor, b: Tensor) -> Tensor:
    """‖a − b‖², coordinate by coordinate."""
    return sum(((a[c] - b[c]) ** 2 for c in range(len(a))), start=torch.zeros(()).double())


def total_variance(v: Tensor) -> Tensor:
    """Mean squared distance from the mean, the unit of squared distance (R5)."""
    mean = sum((v[i] for i in range(1, len(v))), start=v[0]) / len(v)
    return sum((squared_distance(v[i], mean) for i in range(len(v))), start=0.0) / len(v)


def neighborhood(v: Tensor, y: Tensor, i: int, k: int) -> list[int]:
    """𝒩(x_i; k): i and the k others of its class with the smallest distance."""
    others = [j for j in range(len(v)) if j != i and int(y[j]) == int(y[i])]
    others.sort(key=lambda j: float(squared_distance(v[i], v[j])))
    return [i, *others[:k]]


def overload(
    v: Tensor, y: Tensor, k: Sequence[int], r: Sequence[int]
) -> list[tuple[int, list[int]]]:
    """Lines 10–21 of Algorithm 1, without the weights: sample i with 𝒩(x_i), r_j times."""
    rows = []
    for j in range(len(k)):
        for i in range(len(v)):
            if int(y[i]) == j:
                rows += [(i, neighborhood(v, y, i, k[j])) for _ in range(r[j])]
    return rows


def imbalance_ratio(counts: Sequence[int], minority: Sequence[int]) -> float:
    """R: the average minority count over the average majority count."""
    few = [m for j, m in enumerate(counts) if j in minority]
    many = [m for j, m in enumerate(counts) if j not in minority]
    return (sum(few) / len(few)) / (sum(many) / len(many))


def cross_entropy(logits: Tensor, y: int) -> Tensor:
    """ℋ(softmax(logits), y)."""
    return -torch.log(torch.exp(logits[y]) / sum(torch.exp(one) for one in logits))


def rho(errors: Sequence[Tensor], w: Sequence[float] | None = None) -> list[Tensor]:
    """ρ (w left out) or ρ′, as printed (R3, R7); a weight, so without a gradient (R4)."""
    w = [1.0] * len(errors) if w is None else w
    unscaled = [torch.exp(-w[i] * errors[i].detach()) for i in range(len(errors))]
    z = sum(unscaled)
    return [one / z for one in unscaled]


def ell_f(errors: Sequence[Tensor], w: Sequence[float] | None = None) -> Tensor:
    """ℓ_f (w left out) or ℓ′_f."""
    w = [1.0] * len(errors) if w is None else w
    return sum(w[i] * errors[i] for i in range(len(errors)))


def ell_g(rhos: Sequence[Tensor], entropies: Sequence[Tensor]) -> Tensor:
    """ℓ_g or ℓ′_g: the original loss with weight 1 (R7), the neighbours by ρ."""
    return entropies[0] + sum(rhos[i] * entropies[i] for i in range(1, len(rhos)))


def losses(
    fx: Tensor,
    cluster: Sequence[Tensor],
    y: int,
    w: Sequence[float] | None,
    g: Function,
    unit: float,
) -> tuple[Tensor, Tensor]:
    """ℓ′_g and ℓ′_f of one instance, for a cluster that is given as it is."""
    errors = [squared_distance(fx, member) / unit for member in cluster]
    entropies = [cross_entropy(g(member), y) for member in cluster]
    return ell_g(rho(errors, w), entropies), ell_f(errors, w)


def objective(
    fx: Sequence[Tensor], g: Function, y: Tensor, v: Tensor, instances: Sequence[Instance]
) -> tuple[Tensor, Tensor]:
    """Means of ℓ′_g and ℓ′_f over weighted instances, the live f(x) as the self member (R2)."""
    unit = float(total_variance(v))
    sums = [torch.zeros(()).double(), torch.zeros(()).double()]
    for row, z in enumerate(instances):
        cluster = [fx[row], *(v[j] for j in z.members[1:])]
        for part, value in enumerate(losses(fx[row], cluster, int(y[z.i]), z.w, g, unit)):
            sums[part] = sums[part] + value
    return sums[0] / len(instances), sums[1] / len(instances)
