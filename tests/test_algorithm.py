"""Algorithm 1 as a whole: ``fit`` ends at the weights that the paper's loops end at."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

import paper_loops as paper
from deep_oversampling import Network, Plan, Samples
from deep_oversampling.oversampling import sample_simplex
from deep_oversampling.presenting import batches
from deep_oversampling.seeding import streams
from toy import blobs, small, train, weights

K, R = [0, 2, 3], [1, 1, 2]
BATCH, SEED = 7, 3


class Momentum:
    """w ← w − lr·b with b ← 0.9 b + ∇, kept through all rounds (R9)."""

    def __init__(self, network: Network, lr: float = 0.01) -> None:
        self.parameters, self.lr = list(network.parameters()), lr
        self.b = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def descend(self, gradients: list[Tensor]) -> None:
        for p, b, g in zip(self.parameters, self.b, gradients, strict=True):
            b.mul_(0.9).add_(g)
            p.sub_(self.lr * b)


def presented(rows: int, t: int) -> Iterator[list[int]]:
    """The rows of every batch of round t."""
    order, present = batches(rows, BATCH, streams(SEED)("training", t))
    for batch, real in zip(order, present, strict=True):
        yield batch[real].tolist()


def by_the_paper(
    network: Network,
    samples: Samples,
    *,
    rounds: int,
    pull: float,
    limit: float | None,
    weighted: bool,
) -> None:
    """Algorithm 1 in loops, with draws from the package's own streams."""
    x, y, descent = samples.x, samples.y, Momentum(network)
    m = len(samples)
    f = lambda i: network.embed(x[i : i + 1])[0]  # noqa: E731
    g = lambda v: network.classifier(v.unsqueeze(0))[0]  # noqa: E731
    for t in range(rounds):  # line 5
        for batch in presented(m, t):
            ell = sum(paper.cross_entropy(g(f(i)), int(y[i])) for i in batch) / len(batch)
            descent.descend(list(torch.autograd.grad(ell, descent.parameters)))
    for t in range(rounds):  # line 6
        v = torch.stack([f(i).detach() for i in range(m)])  # lines 7–9
        z = []  # lines 10–21
        for i in range(m):
            members = paper.neighborhood(v, y, i, K[int(y[i])])
            z += [paper.Instance(i, members, [1.0] * len(members)) for _ in range(R[int(y[i])])]
        if weighted:
            mask = torch.tensor([[c < len(one.members) for c in range(max(K) + 1)] for one in z])
            w = sample_simplex(mask, streams(SEED)("weights", t)).double()
            z = [
                paper.Instance(one.i, one.members, w[row, : len(one.members)].tolist())
                for row, one in enumerate(z)
            ]
        for batch in presented(len(z), rounds + t):  # line 22
            fx = torch.stack([f(z[row].i) for row in batch])
            chosen = [z[row] for row in batch]
            descent.descend(multi_task_gradients(network, fx, g, y, v, chosen, pull, limit))


def multi_task_gradients(network, fx, g, y, v, instances, strength, limit) -> list[Tensor]:
    """∇ of ℓ′_g + λℓ′_f, with the pull at f(x) shortened to the limit (R5)."""
    leaf = fx.detach().requires_grad_()
    ell_g, ell_f = paper.objective(leaf, g, y, v, instances)
    to_g = torch.autograd.grad(ell_g, [leaf, *network.classifier.parameters()])
    (pull,) = torch.autograd.grad(strength * ell_f, leaf)
    length = float(pull.norm())
    if limit is not None and length > 0:
        pull = min(1.0, limit * float(to_g[0].norm()) / length) * pull
    to_f = torch.autograd.grad(fx, list(network.embedder.parameters()), to_g[0] + pull)
    return [*to_f, *to_g[1:]]


@pytest.mark.parametrize("weighted", [True, False], ids=["weighted", "unweighted"])
@pytest.mark.parametrize(
    ("pull", "limit"), [(0.3, None), (10.0, 0.3)], ids=["free pull", "limited pull"]
)
def test_fit_is_algorithm_1(pull: float, limit: float | None, weighted: bool) -> None:
    """In double precision, so that rounding does not grow from step to step."""
    samples, ours, theirs = blobs((9, 6, 4)), small().double(), small().double()
    train(
        ours,
        samples,
        Plan(k=K, r=R),
        rounds=2,
        batch_size=BATCH,
        pull=pull,
        pull_limit=limit,
        weighted=weighted,
        seed=SEED,
    )
    by_the_paper(theirs, samples, rounds=2, pull=pull, limit=limit, weighted=weighted)
    assert (weights(ours) - weights(small())).norm() > 0.1
    torch.testing.assert_close(weights(ours), weights(theirs), rtol=1e-5, atol=1e-6)


def test_every_round_draws_new_weights() -> None:
    """With weights of the network held still, only w differs between multi-task rounds."""
    history = train(
        small(),
        blobs(),
        Plan(k=K, r=R),
        rounds=3,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.0),
    )
    assert len({r.embedding_loss for r in history.rounds if r.task == "multi"}) == 3
