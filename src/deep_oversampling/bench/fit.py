"""What a whole training costs with DOS, and where the time of a multi-task round goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch

from ..embeddings import embed_classes
from ..models import small_network
from ..network import Network
from ..overloading import in_class_neighbors
from ..oversampling import sample_simplex
from ..plan import Plan
from ..rivals.dos import DOS
from ..rivals.method import Contest, Method
from ..rivals.random_oversampling import RANDOM_OVERSAMPLING
from ..samples import Samples
from ..seeding import streams
from ..stages import Member, sgd, train_members
from ..training import Trainer
from .material import BATCH, rare
from .records import Record, Setting, figure
from .rounds import OBJECTIVES, copies, make_round, overloaded
from .sizes import Sizes
from .timing import fastest

__all__ = ["figures"]

_PART = "fit"


def figures(device: torch.device, sizes: Sizes) -> Iterator[Record]:
    """DOS against random over-sampling: the same rounds, presentations and steps."""
    samples, plan = rare(sizes.majority, (1, sizes.side, sizes.side), share=0.01)
    network, samples = small_network(samples).to(device), samples.to(device)
    for e in sizes.fits:
        actions = {
            method.name: _training(method, network, samples, plan, e, sizes)
            for method in (RANDOM_OVERSAMPLING, DOS)
        }
        found = fastest(actions, device, repeats=sizes.trainings)
        setting: Setting = {"E": e, "m": len(samples), "T": sizes.rounds}
        plain = figure(_PART, "plain training", setting, found["ros"], "s")
        yield plain
        yield figure(_PART, "DOS training", setting, found["dos"], "s", to=plain)
        yield from _shares(network, samples, plan, e, device, sizes)


def _training(
    method: Method, network: Network, samples: Samples, plan: Plan, e: int, sizes: Sizes
) -> Callable[[], None]:
    """Networks are made before the clock is started: enough for every repeat."""

    def members() -> list[Member]:
        made = []
        for seed, own in enumerate(copies(network, e)):
            rng = streams(seed)
            contest = Contest(samples, plan, sizes.rounds, sizes.rounds, rng)
            made.append(Member(own, method.training.stages(own, contest), rng))
        return made

    waiting = [members() for _ in range(sizes.trainings + 1)]

    def train() -> None:
        trained = waiting.pop()
        train_members(trained, batch_size=BATCH)
        for member in trained:
            if member.error:
                raise member.error

    return train


def _shares(
    network: Network, samples: Samples, plan: Plan, e: int, device: torch.device, sizes: Sizes
) -> Iterator[Record]:
    """Of a multi-task round, each thing done for all members."""
    networks = copies(network, e)
    tables = overloaded(networks, samples, plan)
    trainer = Trainer(networks, sgd)
    y, wanted = samples.y, plan.k > 0
    masks = [table.neighborhoods.mask[table.hood] for table in tables]
    actions: dict[str, Callable[[], object]] = {
        "embedding": lambda: [embed_classes(one, samples, wanted) for one in networks],
        "search": lambda: [in_class_neighbors(t.v, y[t.kept], plan.k) for t in tables],
        "weights": lambda: [
            sample_simplex(mask, streams(0)("weights"), rows=table.crowded, count=len(table))
            for mask, table in zip(masks, tables, strict=True)
        ],
        "steps": make_round(trainer, tables, OBJECTIVES["DOS"], BATCH),
    }
    seconds = fastest(actions, device, repeats=sizes.repeats)
    setting: Setting = {"E": e, "m": len(samples)}
    whole = figure(_PART, "DOS round", setting, sum(seconds.values()), "s")
    yield whole
    part = partial(figure, _PART, setting=setting, unit="s", to=whole)
    for name, value in seconds.items():
        yield part(what=f"of it {name}", value=value)
