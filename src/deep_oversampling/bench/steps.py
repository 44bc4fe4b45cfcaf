"""What a step of DOS costs beside one of plain training, however steps are run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch

from ..engine import Engine
from ..models import resnet32, small_network
from ..network import Network, Normalize
from ..plan import Plan
from ..presenting import Table
from ..samples import Samples
from ..stages import sgd
from ..training import Trainer
from .material import BATCH, rare, shortened
from .records import Note, Record, Setting, figure
from .rounds import OBJECTIVES, copies, make_round, overloaded
from .sizes import Sizes
from .timing import fastest

__all__ = ["figures"]

_PART = "steps"
_RESNET_BATCH = 128
_ENGINES = {
    "eager": Engine(replay=False),
    "graph": Engine(),
    "compile": Engine(compile=True),
    "graph, bf16": Engine(bf16=True),
    "compile, bf16": Engine(compile=True, bf16=True),
}


def figures(device: torch.device, sizes: Sizes) -> Iterator[Record | Note]:
    """µs per step of a round, for all E networks and for each of them."""
    samples, plan = rare(sizes.majority, (1, sizes.side, sizes.side), share=0.01)
    network = small_network(samples).to(device)
    lenet = partial(_mode, "LeNet", network, samples.to(device), plan, BATCH)
    for mode, members in sizes.modes.items():
        yield from _tried(f"LeNet, {mode}", lenet(mode, members, device, sizes))
    if not sizes.resnet:
        return
    samples, plan = rare(sizes.resnet_majority, (3, 32, 32), share=0.01)
    network = resnet32(3, 10, normalize=Normalize.of(samples.x)).to(device)
    resnet = partial(_mode, "ResNet-32", network, samples.to(device), plan, _RESNET_BATCH)
    for mode in sizes.resnet:
        yield from _tried(f"ResNet-32, {mode}", resnet(mode, (1,), device, sizes))


def _tried(what: str, records: Iterator[Record]) -> Iterator[Record | Note]:
    """A machine without a compiler, or with little memory, leaves a mode out, not the rest."""
    try:
        yield from records
    except RuntimeError as error:
        yield Note(_PART, f"{what}: left out, {str(error).strip().partition(chr(10))[0]}")


def _mode(
    name: str,
    network: Network,
    samples: Samples,
    plan: Plan,
    batch_size: int,
    mode: str,
    members: Sequence[int],
    device: torch.device,
    sizes: Sizes,
) -> Iterator[Record]:
    torch.compiler.reset()  # of one function it keeps a few versions only, then gives up
    rows, actions, taken = sizes.steps * batch_size, {}, {}
    for e in members:
        networks = copies(network, e)
        tables: dict[str, Sequence[Table]] = {
            "plain": [shortened(samples, rows)] * e,
            "DOS": [shortened(table, rows) for table in overloaded(networks, samples, plan)],
        }
        trainer = Trainer(networks, sgd, engine=_ENGINES[mode])
        for task, objective in OBJECTIVES.items():
            actions[e, task] = make_round(trainer, tables[task], objective, batch_size)
            taken[e, task] = -(-len(tables[task][0]) // batch_size)
    seconds = fastest(actions, device, repeats=sizes.repeats)
    alone: dict[str, Record] = {}
    for e in members:
        plain = None
        for task in OBJECTIVES:
            setting: Setting = {"network": name, "mode": mode, "E": e}
            value = 1e6 * seconds[e, task] / taken[e, task]
            step = figure(_PART, f"{task} step", setting, value, "µs/step", to=plain)
            plain = plain or step
            yield step
            if e == 1:
                alone[task] = step
            else:
                to = alone.get(task)
                yield figure(_PART, step.what, setting, value / e, "µs/step/trial", to=to)
