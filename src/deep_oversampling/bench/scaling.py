"""How time and memory grow: search with m and d, a DOS step with k, n and E, embedding with m."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import torch

from ..models import small_network
from ..network import embed
from ..stages import sgd
from ..training import Trainer
from .material import BATCH, NEIGHBOURS, images, rare, shortened, vectors
from .records import Note, Record, figure, slope
from .rounds import OBJECTIVES, copies, make_round, overloaded
from .search import DIMENSIONS, of_one_class
from .sizes import Sizes
from .timing import fastest, peak

__all__ = ["figures"]

_PART = "scaling"
_K = 10  # of the search
_SHARE = 0.1  # of a majority class's samples: enough for the largest k
_MIB = 2**20

Action = Callable[[], object]
Maker = Callable[[], tuple[Action, int]]  # -> what is timed, and how many steps it takes


def figures(device: torch.device, sizes: Sizes) -> Iterator[Record | Note]:
    """Curves, each with the slope of the line through it on logarithmic axes first."""
    if device.type != "cuda":
        yield Note(_PART, "memory is measured on cuda only")
    curve = partial(_curve, device=device, sizes=sizes)
    yield from curve("search", "m", {m: _searching(m, DIMENSIONS, device) for m in sizes.search_m})
    yield from curve("search", "d", {d: _searching(sizes.at_m, d, device) for d in sizes.search_d})
    yield from curve("embedding", "m", {m: _embedding(m, device, sizes) for m in sizes.embed_m})
    stepping = partial(_stepping, device=device, sizes=sizes)
    curve = partial(curve, "DOS step", unit="µs/step")
    yield from curve("k", {k: stepping(k=k) for k in sizes.step_k})
    yield from curve("n", {n: stepping(n=n) for n in sizes.step_n})
    yield from curve("E", {e: stepping(e=e) for e in sizes.step_e})


def _curve(
    what: str,
    against: str,
    makers: Mapping[int, Maker],
    *,
    device: torch.device,
    sizes: Sizes,
    unit: str = "s",
) -> Iterator[Record]:
    actions, steps, peaks = {}, {}, {}
    for x, make in makers.items():
        (actions[x], steps[x]), peaks[x] = peak(partial(_ready, make, device), device)
    seconds = fastest(actions, device, repeats=sizes.repeats)
    scale = 1e6 if unit.startswith("µs") else 1.0
    times = {x: scale * value / steps[x] for x, value in seconds.items()}
    memory = {x: value / _MIB for x, value in peaks.items() if value}
    what = f"{what} against {against}"
    for name, values, of in (("time", times, unit), ("memory", memory, "MiB")):
        if values:
            rise = slope(list(values), list(values.values()))
            yield figure(_PART, what, {}, rise, f"slope of {name}")
        for x, value in values.items():
            yield figure(_PART, what, {against: x}, value, of)


def _ready(make: Maker, device: torch.device) -> tuple[Action, int]:
    """Where memory is measured, done once: a recorded step takes it when it is recorded."""
    action, steps = make()
    if device.type == "cuda":
        action()
    return action, steps


def _searching(m: int, d: int, device: torch.device) -> Maker:
    v = vectors(m, d, device)
    return lambda: (partial(of_one_class, v, _K), 1)


def _embedding(m: int, device: torch.device, sizes: Sizes) -> Maker:
    samples = images([m // 10] * 10, (1, sizes.side, sizes.side))
    network, x = small_network(samples).to(device), samples.x.to(device)
    return lambda: (partial(embed, network, x), 1)


def _stepping(
    *, k: int = NEIGHBOURS, n: int = 10, e: int = 1, device: torch.device, sizes: Sizes
) -> Maker:
    """𝒵′ has as many rows for every n."""
    shape = (1, sizes.side, sizes.side)
    samples, plan = rare(sizes.step_rows // n, shape, n=n, k=k, share=_SHARE)
    network, samples = small_network(samples).to(device), samples.to(device)

    def make() -> tuple[Action, int]:
        networks = copies(network, e)
        rows = sizes.steps * BATCH
        tables = [shortened(table, rows) for table in overloaded(networks, samples, plan)]
        action = make_round(Trainer(networks, sgd), tables, OBJECTIVES["DOS"], BATCH)
        return action, -(-len(tables[0]) // BATCH)

    return make
