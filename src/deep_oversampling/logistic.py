"""Logistic regression on the device, for E sets of embeddings at once, to the optimum."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from .errors import InputError

__all__ = ["Logistic", "logistic_regression", "logistic_regressions"]

# Of logistic regression. The penalty makes the objective so convex that a gradient of this size
# leaves it 2e-10 above the optimum, which bounds Σ KL(optimal P(C|x) ‖ P(C|x)) over the samples: by
# Pinsker none of these probabilities is off by more than 1e-5.
_TOLERANCE = 2e-5
_MOST = 200  # iterations; ten to thirty are usual
_STEPS = 50  # of conjugate gradients in one of them; five are usual
_LEAST = 1e-4  # μ, where it is not 0; the curvature of a logit is 1/4 at most
_TINY = torch.finfo(torch.float32).tiny
_WIDE = 256  # dimensions: beyond them a CPU has the better of it with scikit-learn


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted logistic regression, in double precision; for mps, which has none, on the CPU."""

    weights: Tensor  # (n, d)  for standardised embeddings; the classes sum to 0
    bias: Tensor  # (n,)     -inf for a class without samples
    mean: Tensor  # (d,)
    std: Tensor  # (d,)

    def probabilities(self, queries: Tensor) -> Tensor:  # (q, d) -> (q, n)
        x = (queries.to(self.mean.device).double() - self.mean) / self.std
        return torch.addmm(self.bias, x, self.weights.T).softmax(1)


def logistic_regression(v: Tensor, y: Tensor, n: int) -> Logistic:  # (m, d), (m,)
    """Σ ℋ + ½ ‖weights‖² over standardised embeddings, minimised; the bias is free."""
    (model,) = logistic_regressions([(v, y)], n)
    return model


def logistic_regressions(
    members: Sequence[tuple[Tensor, Tensor]],  # E times (m, d) and (m,); m may differ
    n: int,
) -> list[Logistic]:
    """`logistic_regression` for E members.

    The objective is strictly convex and that of scikit-learn's ``StandardScaler`` followed by
    ``LogisticRegression``: for two classes that has one vector u = weights_1 − weights_0 and
    penalises ½ ‖u‖², which by symmetry is ½ ‖weights‖² twice, so two classes pay double. Ours goes
    on to the optimum (``_TOLERANCE``). On a CPU, with more than 256 dimensions, scikit-learn's is
    taken, which is faster there, but stops when its own tolerance is reached.
    """
    sizes = sorted({v.shape[1] for v, _ in members})
    if len(sizes) != 1:
        raise InputError(
            f"members must have embeddings of one size, found {sizes or 'no member'}; fit those of "
            "another size apart"
        )
    if members[0][0].device.type in ("cpu", "mps"):  # one by one: a batch is as slow as its slowest
        return [_on_the_cpu(v.cpu(), y.cpu(), n) for v, y in members]
    longest = max(len(v) for v, _ in members)
    together = max(1, 2**33 // (8 * longest * (2 * sizes[0] + 8 * n)))  # in about 8 GiB
    return [
        model
        for start in range(0, len(members), together)
        for model in _fit(members[start : start + together], n)
    ]


def _on_the_cpu(v: Tensor, y: Tensor, n: int) -> Logistic:
    if v.shape[1] <= _WIDE or len(y.unique()) == 1:
        return _fit([(v, y)], n)[0]
    scale = StandardScaler().fit(v.numpy())
    model = LogisticRegression(max_iter=1000).fit(scale.transform(v.numpy()), y.numpy())
    weights, bias = torch.zeros(n, v.shape[1]).double(), torch.full((n,), -torch.inf).double()
    for ours, theirs in ((weights, model.coef_), (bias, model.intercept_)):
        both = theirs if len(theirs) > 1 else np.concatenate([-theirs, theirs]) / 2  # two classes
        ours[model.classes_] = torch.from_numpy(both).double()
    return Logistic(weights, bias, torch.from_numpy(scale.mean_), torch.from_numpy(scale.scale_))


def _fit(members: Sequence[tuple[Tensor, Tensor]], n: int) -> list[Logistic]:
    """Standardise every member, pad them to the largest, find the optimum of all together."""
    e, m, d = len(members), max(len(v) for v, _ in members), members[0][0].shape[1]
    x = torch.zeros(e, m, d + 1, dtype=torch.float64, device=members[0][0].device)
    y = torch.zeros(e, 1, m, dtype=torch.long, device=x.device)
    scales = []
    for i, (v, labels) in enumerate(members):
        x[i, : len(v), :d], x[i, : len(v), d], y[i, 0, : len(v)] = v, 1, labels
        scales.append(_standardise(x[i, : len(v), :d]))
    objective = _Objective.of(x, y, n)
    theta = _optimum(objective)
    bias = theta[:, :, d].masked_fill(objective.share.squeeze(2) == 0, -torch.inf)
    return [Logistic(t[:, :d], b, *s) for t, b, s in zip(theta, bias, scales, strict=True)]


def _standardise(x: Tensor) -> tuple[Tensor, Tensor]:  # (m, d), in place -> mean and std, (d,)
    """As StandardScaler does, which leaves a feature that is constant but for rounding."""
    mean = x.mean(0)
    variance = x.sub_(mean).square().mean(0)
    rounding = len(x) * torch.finfo(x.dtype).eps
    constant = variance <= rounding * variance + (rounding * mean).square()
    std = variance.sqrt().masked_fill(constant, 1)
    x /= std
    return mean, std


@dataclass(frozen=True, eq=False)
class _Objective:
    """Σ ℋ + ½ ‖weights‖² of E members, its gradient and its curvature.

    θ, (E, n, d+1), holds weights and bias. What samples have for every class is (E, n, m): sums
    over the few classes then run along long rows.
    """

    x: Tensor  # (E, m, d+1)  standardised; the last feature is 1, for the bias; 0 where padded
    y: Tensor  # (E, 1, m)
    sums: Tensor  # (E, n, d+1)  Σ x of each class
    share: Tensor  # (E, n, 1)  1 / the classes that have samples; 0 for one that has none
    penalty: Tensor  # (E, 1, d+1)

    @classmethod
    def of(cls, x: Tensor, y: Tensor, n: int) -> _Objective:
        there = x[:, :, -1].unsqueeze(1)
        sums = x.new_zeros(len(x), n, x.shape[1]).scatter_(1, y, there) @ x
        seen = (sums[:, :, -1:] > 0).to(x.dtype)
        classes = seen.sum(1, keepdim=True)
        penalty = 1 + (classes == 2).to(x.dtype).repeat(1, 1, x.shape[2])
        penalty[:, :, -1] = 0
        return cls(x, y, sums, seen / classes, penalty)

    def single(self) -> _Objective:
        """In single precision, which does for the curvature: it only decides the way there."""
        x, share, penalty = self.x.float(), self.share.float(), self.penalty.float()
        return _Objective(x, self.y, self.sums, share, penalty)

    def at(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The value (E, 1, 1), the gradient (E, n, d+1) and P(C|x) (E, n, m)."""
        closed = -1e30 * (self.share == 0).to(theta.dtype)  # finite, as 0 · inf is not 0
        logits = torch.baddbmm(closed, theta, self.x.mT)
        total = logits.logsumexp(1, keepdim=True)
        entropy = _dot(total - logits.gather(1, self.y), self.x[:, :, -1:].mT)
        p = logits.sub_(total).exp_()
        pull = self.penalty * theta
        return entropy + _dot(pull, theta) / 2, torch.baddbmm(pull - self.sums, p, self.x), p

    def curvature(self, p: Tensor, mu: Tensor, theta: Tensor) -> Tensor:
        """(H + μ Σ xxᵀ) θ, without H, which is (n · d)²."""
        moved = theta @ self.x.mT  # the logits
        change = p * moved
        change = change.addcmul_(p, change.sum(1, keepdim=True), value=-1).addcmul_(mu, moved)
        return torch.baddbmm(self.penalty * theta, change, self.x)

    def gram(self, s: Tensor) -> Tensor:  # (E, c, m) -> (E, c, d+1, d+1)
        """Σ_i s_i x_i x_iᵀ for each of c weightings, in blocks of rows that fit a CPU's cache."""
        e, c, m = s.shape
        d = self.x.shape[2]
        step = max(1, (2**21 if s.device.type == "cpu" else 2**28) // (4 * e * c * d))
        found, roots = s.new_zeros(e * c, d, d), s.sqrt().unsqueeze(3)
        for start in range(0, m, step):
            rows = slice(start, start + step)
            x = (roots[:, :, rows] * self.x[:, None, rows]).flatten(0, 1)
            found.baddbmm_(x.mT, x)  # with itself: no rounding leaves it other than positive
        return found.view(e, c, d, d)

    def differing(self, theta: Tensor) -> Tensor:
        """Without what the classes share: it changes no P(C|x), and is 0 at the optimum."""
        return torch.addcmul(theta, self.share, theta.sum(1, keepdim=True), value=-1)


def _optimum(objective: _Objective) -> Tensor:  # (E, n, d+1)
    """θ by Newton's method, with steps by preconditioned conjugate gradients, for all members.

    Confidently wrong samples have a slope and no curvature: a step of Newton's would throw them far
    beyond the optimum. μ Σ xxᵀ is added to the curvature where a step did not keep its promise; it
    bounds how far the logits move (Levenberg and Marquardt) and is gone near the optimum.
    """
    single, d = objective.single(), objective.x.shape[2]
    theta = torch.zeros_like(objective.sums)
    value, gradient, p = objective.at(theta)
    gram = single.gram(single.x[:, :, -1:].mT)
    # at the start all classes have the same curvature in all samples
    blocks = (p * (1 - p))[:, :, :1].amax(1, keepdim=True).float().unsqueeze(3) * gram
    inverse, mu = _inverse(blocks, single.penalty), torch.zeros_like(value)
    held, steps, spent = mu, 0, 0
    for iteration in range(_MOST):
        if bool((gradient.flatten(1).norm(dim=1) <= _TOLERANCE).all()):
            return theta
        # new blocks cost as much as d / 4 steps: when so many were made, and more than needed
        q, stale = p.float(), steps > min(9, d / 12) and spent > d / 4
        if stale:
            blocks, spent = single.gram(q * (1 - q)), 0
        if stale or bool((mu != held).any()):
            inverse, held = _inverse(blocks + mu.float().unsqueeze(3) * gram, single.penalty), mu
        step, promised, steps = _newton_step(single, q, mu.float(), gradient, inverse)
        steps = steps if iteration else 40  # the first is easy; about so many would be the second's
        spent += steps
        moved = objective.differing(theta + step)  # again, for the rounding of single precision
        after = objective.at(moved)
        rounding = 1e-12 * value
        kept = (value - after[0] + rounding) / (promised + rounding)
        raised, lowered = (8 * mu).clamp(min=_LEAST), (mu / 8).where(mu > _LEAST, 0)
        mu = torch.where(kept > 0.75, lowered, torch.where(kept > 0.25, mu, raised))
        theta, value, gradient, p = (
            torch.where(kept > 1e-3, new, old)
            for new, old in zip((moved, *after), (theta, value, gradient, p), strict=True)
        )
    warnings.warn(
        f"logistic regression must reach a gradient of {_TOLERANCE} in {_MOST} iterations, found "
        f"{float(gradient.flatten(1).norm(dim=1).max()):.2g}; its probabilities are approximate",
        stacklevel=2,
    )
    return theta


def _inverse(blocks: Tensor, penalty: Tensor) -> Tensor:  # (E, n, d+1, d+1)
    """Of the curvature within each class: what conjugate gradients are preconditioned with."""
    diagonal = blocks.diagonal(dim1=2, dim2=3)
    added = penalty + 1e-5 * diagonal + 1e-9  # against rounding; a class may be without curvature
    lower = torch.linalg.cholesky(blocks.double() + torch.diag_embed(added))
    eye = torch.eye(lower.shape[3], dtype=lower.dtype, device=lower.device).expand_as(lower)
    half: Tensor = torch.linalg.solve_triangular(lower, eye, upper=False)
    return (half.mT @ half).float()


def _newton_step(
    objective: _Objective, p: Tensor, mu: Tensor, gradient: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor, int]:
    """−H⁻¹ gradient to a tenth, what it promises to gain, and how many steps that took."""

    def preconditioned(residual: Tensor) -> Tensor:
        if inverse.shape[1] == 1:  # one for all classes
            return objective.differing(residual @ inverse.squeeze(1))
        return objective.differing((inverse @ residual.unsqueeze(3)).squeeze(3))

    target = residual = -gradient.float()
    step, direction = torch.zeros_like(residual), preconditioned(residual)
    size = _dot(residual, direction)
    enough = 0.01 * size
    steps = 0
    while steps < _STEPS and bool((size > enough).any()):
        curved = objective.curvature(p, mu, direction)
        length = size / _dot(direction, curved).clamp(min=_TINY)  # of a member that is done: 0 / 0
        step = torch.addcmul(step, length, direction)
        residual = torch.addcmul(residual, length, curved, value=-1)
        nearer = preconditioned(residual)
        size, before = _dot(residual, nearer), size
        direction = torch.addcmul(nearer, size / before.clamp(min=_TINY), direction)
        steps += 1
    return step.double(), _dot(step, residual + target).double() / 2, steps


def _dot(a: Tensor, b: Tensor) -> Tensor:  # of every member, (E, 1, 1)
    return (a * b).sum((1, 2), keepdim=True)
