"""The rivals' formulas as plain loops over plain numbers, a row at a time."""

import math
from collections.abc import Sequence

Rows = Sequence[Sequence[float]]


def entropy(logits: Sequence[float], label: int) -> float:
    """−log of the softmax, shifted by the largest logit so that nothing overflows."""
    top = max(logits)
    total = sum(math.exp(z - top) for z in logits)
    return math.log(total) - (logits[label] - top)


def focal(logits: Sequence[float], label: int, gamma: float) -> float:
    ell = entropy(logits, label)
    return (1 - math.exp(-ell)) ** gamma * ell


def mean_one(each: Sequence[float], counts: Sequence[int]) -> list[float]:
    """Weights of classes, scaled until those of all samples have the mean 1."""
    of_samples = [w for w, m in zip(each, counts, strict=True) for _ in range(m)]
    mean = sum(of_samples) / len(of_samples)
    return [w / mean for w in each]


def inverse_frequency(counts: Sequence[int]) -> list[float]:
    return mean_one([1 / max(m, 1) for m in counts], counts)


def effective_number(counts: Sequence[int], beta: float) -> list[float]:
    """1 / (1 + β + … + β^(m−1)): the geometric series itself."""
    return mean_one([1 / sum(beta**i for i in range(max(m, 1))) for m in counts], counts)


def logit_adjusted(logits: Sequence[float], label: int, counts: Sequence[int], tau: float) -> float:
    shares = [m / sum(counts) for m in counts]
    return entropy([z + tau * math.log(s) for z, s in zip(logits, shares, strict=True)], label)


def ldam(
    logits: Sequence[float], label: int, counts: Sequence[int], largest: float, scale: float
) -> float:
    rarest = min(counts)
    margin = largest * (rarest / counts[label]) ** 0.25  # m^(−1/4), the rarest has the largest
    behind = list(logits)
    behind[label] -= scale * margin
    return entropy(behind, label)


def cosines(v: Sequence[float], weight: Rows, scale: float) -> list[float]:
    def length(u: Sequence[float]) -> float:
        return math.sqrt(sum(c * c for c in u))

    return [
        scale * sum(a * b for a, b in zip(v, w, strict=True)) / (length(v) * length(w))
        for w in weight
    ]


def label_share(share: float, mine: int, theirs: int, kappa: float, tau: float) -> float:
    """Remix, equation by equation: the share of the own label, for counts mine and theirs."""
    if mine / theirs >= kappa and share < tau:
        return 0.0
    if mine / theirs <= 1 / kappa and 1 - share < tau:
        return 1.0
    return share


def squared_distance(u: Sequence[float], v: Sequence[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(u, v, strict=True))


def local_margin(
    distances: Sequence[float], labels: Sequence[int], own: int, neighbours: int
) -> float:
    """Nearest retrieved cluster of another class less the farthest retrieved of the own."""
    retrieved: dict[int, list[float]] = {}
    for d, j in sorted(zip(distances, labels, strict=True)):
        if len(retrieved.setdefault(j, [])) < neighbours:
            retrieved[j].append(d)
    others = [d for j, found in retrieved.items() if j != own for d in found]
    return min(others) - max(retrieved[own])


def companions(
    v: Rows, y: Sequence[int], cluster: Sequence[int], a: int
) -> tuple[list[int], list[bool]]:
    """LMLE's quintuplet of an anchor, and which of its three margins count."""
    rows = range(len(v))
    far = [squared_distance(v[a], v[i]) for i in rows]
    p_plus = max((i for i in rows if cluster[i] == cluster[a]), key=far.__getitem__)
    elsewhere = [i for i in rows if y[i] == y[a] and cluster[i] != cluster[a]]
    p_minus = min(elsewhere, key=far.__getitem__) if elsewhere else p_plus
    p_far = max((i for i in rows if y[i] == y[a]), key=far.__getitem__)
    negative = min((i for i in rows if y[i] != y[a]), key=far.__getitem__)
    counts = [bool(elsewhere), p_far != p_minus, True]
    return [a, p_plus, p_minus, p_far, negative], counts
