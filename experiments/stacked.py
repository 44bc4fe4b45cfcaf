"""Many trainings of the paper's CNN at once, for sweeps: E members in one vmapped step.

Each member has its own subset, plan, learning rate, λ and draws; objective, over-sampling and
draws are the library's own, so a member does what ``fit`` would do for it alone.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.optim import SGD

from deep_oversampling import DOSError, Network, Normalize, Plan, Samples, fit, lenet
from deep_oversampling.data.imbalance import drop_from_classes
from deep_oversampling.objectives import multi_task
from deep_oversampling.overloading import Neighborhoods
from deep_oversampling.oversampling import MicroClusters, oversample
from deep_oversampling.presenting import batches
from deep_oversampling.seeding import streams


@dataclass(frozen=True)
class Member:
    """One training: which subset and draws (seed), which method, at which learning rate."""

    seed: int
    lr: float
    method: str  # "cnn", "ros" or "dos"
    pull: float = 0.0
    k: int = 5


class _Functional:
    """A network whose parameters are given, as the objectives see it."""

    def __init__(self, network: Network, parameters: dict[str, Tensor]) -> None:
        self._network, self._parameters = network, parameters

    def embed(self, x: Tensor) -> Tensor:
        return self._call("embedder", self._network.normalize(x))

    def classifier(self, v: Tensor) -> Tensor:
        return self._call("classifier", v)

    def _call(self, part: str, x: Tensor) -> Tensor:
        own = {n[len(part) + 1 :]: p for n, p in self._parameters.items() if n.startswith(part)}
        return functional_call(getattr(self._network, part), own, (x,))


def imbalanced(
    pool: Samples, member: Member, p: float, *, scale: float = 1.0
) -> tuple[Samples, Plan, list[int], Network]:
    """What a member starts from: its subset, plan, minority classes and untrained network.

    ``scale`` multiplies the embeddings by a constant and divides the classifier's weights by
    it: the same function at the start, another scale of the feature space.
    """
    generator = streams(member.seed)("imbalance")
    kept, minority = drop_from_classes(pool.to("cpu"), p, generator=generator)
    subset = pool[kept.to(pool.x.device)]
    plan = Plan.for_minority(subset.class_counts, minority, k=member.k)
    plans = {"cnn": Plan.plain(pool.n), "ros": plan.without_neighbours(), "dos": plan}
    normalize = Normalize.of(pool.x)
    network = lenet(tuple(pool.x.shape[1:]), pool.n, normalize=normalize, seed=member.seed)
    with torch.no_grad():  # ReLU passes a positive factor on
        for parameter in network.embedder[-2].parameters():
            parameter *= scale
        network.classifier[0].weight /= scale
    return subset, plans[member.method], minority, network


def train(
    pool: Samples,
    members: list[Member],
    *,
    p: float,
    rounds: int,
    batch_size: int,
    limit: float | None,
    scale: float = 1.0,
) -> tuple[list[Network], list[list[int]]]:
    """Train every member on its own imbalanced subset; the networks and the minority classes."""
    device = pool.x.device
    starts = [imbalanced(pool, m, p, scale=scale) for m in members]
    subsets, plans, minorities, networks = (list(column) for column in zip(*starts, strict=True))
    shared = networks[0].to(device)  # all share the normalisation of the pool
    named = [dict(network.named_parameters()) for network in networks]
    parameters = {n: torch.stack([each[n].detach().to(device) for each in named]) for n in named[0]}
    momentum = {n: torch.zeros_like(v) for n, v in parameters.items()}
    lr = torch.tensor([m.lr for m in members], device=device)
    pull = torch.tensor([m.pull for m in members], device=device)

    def loss(
        parameters: dict[str, Tensor],
        pull: Tensor,
        share: Tensor,
        z: tuple[Tensor, ...],
    ) -> Tensor:
        ell = multi_task(pull, limit)(_Functional(shared, parameters), MicroClusters(*z))
        return ell[0] @ share + ell[1] @ share

    gradients = vmap(grad(loss))

    for t in range(2 * rounds):
        tables, steps = [], 0
        for e, (member, subset) in enumerate(zip(members, subsets, strict=True)):
            own = {n: v[e] for n, v in parameters.items()}
            rng = streams(member.seed)
            plan = plans[e] if t >= rounds else Plan.plain(pool.n)  # R11: single-task first
            with torch.no_grad():
                f = _Functional(shared, own)
                v = torch.cat([f.embed(part) for part in subset.x.split(8192)])
            if not bool(v.isfinite().all()) or not bool(v.var(0).sum() > 0):
                lr[e] = 0.0  # lost: it keeps the weights it has, and any table will do
                v = torch.rand_like(v)
            z = oversample(subset, v, plan, generator=rng("weights", t - rounds))
            rows, present = batches(len(z), batch_size, rng("training", t))
            tables.append((z, rows.to(device), present.to(device)))
            steps = max(steps, len(rows))
        _train_round(tables, steps, parameters, momentum, lr, pull, gradients)
    for e, network in enumerate(networks):
        network.to(device)
        for n, parameter in network.named_parameters():
            parameter.data.copy_(parameters[n][e])
    return networks, minorities


def train_alone(
    pool: Samples, members: list[Member], *, p: float, limit: float | None, scale=1.0, **settings
) -> tuple[list[Network], list[list[int]]]:
    """The same one by one, with ``fit``: faster than a stack where there is no GPU."""
    networks, minorities = [], []
    for member in members:
        subset, plan, minority, network = imbalanced(pool, member, p, scale=scale)
        with suppress(DOSError):  # a lost one is judged with the weights it is left with
            fit(
                network,
                subset,
                plan,
                pull=member.pull,
                pull_limit=limit,
                optimizer=partial(SGD, lr=member.lr, momentum=0.9),
                seed=member.seed,
                device=pool.x.device,
                **settings,  # rounds, batch_size
            )
        networks.append(network)
        minorities.append(minority)
    return networks, minorities


def _train_round(tables, steps, parameters, momentum, lr, pull, gradients) -> None:
    """One round for all members; on a GPU the step is captured once and replayed."""
    device = lr.device
    width = max(z.w.shape[1] for z, _, _ in tables)
    size, samples = tables[0][1].shape[1], max(len(z.samples) for z, _, _ in tables)
    length = max(len(z) for z, _, _ in tables)

    def stacked(values: list[Tensor], *shape: int) -> Tensor:
        out = values[0].new_zeros(len(values), *shape)
        for e, value in enumerate(values):
            out[(e, *map(slice, value.shape))] = value
        return out

    hoods: list[Neighborhoods] = [z.neighborhoods for z, _, _ in tables]
    x = stacked([z.samples.x for z, _, _ in tables], samples, *tables[0][0].samples.x.shape[1:])
    y = stacked([z.samples.y for z, _, _ in tables], samples)
    v = stacked([z.v for z, _, _ in tables], samples, tables[0][0].v.shape[1])
    index = stacked([h.index for h in hoods], samples, width)
    mask = stacked([h.mask for h in hoods], samples, width)
    anchor = stacked([z.anchor for z, _, _ in tables], length)
    w = stacked([z.w for z, _, _ in tables], length, width)
    rows = stacked([r for _, r, _ in tables], steps, size)
    present = stacked([p for _, _, p in tables], steps, size).float()
    share = present / present.sum(2, keepdim=True).clamp(min=1)
    variance = torch.stack([z.variance for z, _, _ in tables])
    e = torch.arange(len(tables), device=device).unsqueeze(1)
    step = torch.zeros(1, dtype=torch.long, device=device)

    def one_step() -> None:
        row = rows.index_select(1, step).squeeze(1)  # (E, b)
        i = anchor[e, row]
        z = (x[e, i], y[e, i], v[e.unsqueeze(2), index[e, i, 1:]], w[e, row], mask[e, i], variance)
        now = share.index_select(1, step).squeeze(1)
        g = gradients(parameters, pull, now, z)
        awake = now.sum(1) > 0  # a member whose round is over waits for the others
        for n, parameter in parameters.items():
            on = awake.view(-1, *[1] * (parameter.ndim - 1))
            momentum[n].copy_(torch.where(on, 0.9 * momentum[n] + g[n], momentum[n]))
            parameter -= (on * lr.view_as(on)) * momentum[n]
        step.add_(1)

    if device.type != "cuda":
        for _ in range(steps):
            one_step()
        return
    saved = [t.clone() for t in (*parameters.values(), *momentum.values())]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        one_step(), one_step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    step.zero_()
    with torch.cuda.graph(graph):
        one_step()
    for live, old in zip((*parameters.values(), *momentum.values()), saved, strict=True):
        live.copy_(old)
    step.zero_()
    for _ in range(steps):
        graph.replay()
    torch.cuda.synchronize()
