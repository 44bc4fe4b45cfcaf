"""How much is measured: enough to tell, in the time there is on a CPU and on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

__all__ = ["Sizes", "sizes_for"]


@dataclass(frozen=True)
class Sizes:
    """Of the generated data, and what is varied."""

    repeats: int  # after one that does not count
    side: int  # of the images of one channel
    majority: int  # samples of each of six classes; the other four have 1 %, but k + 1 at least
    steps: int  # of a round at most
    modes: dict[str, tuple[int, ...]]  # how steps are run -> trainings at once, E
    resnet: tuple[str, ...]  # modes of ResNet-32
    resnet_majority: int
    rounds: int  # T, and as many before
    trainings: int  # repeats of a whole one, after one that does not count
    fits: tuple[int, ...]  # E of whole trainings
    test: int  # images to evaluate on
    search: tuple[int, ...]  # m_j where others search too
    search_alone: tuple[int, ...]
    # what is varied in `scaling`
    search_m: tuple[int, ...]
    search_d: tuple[int, ...]
    at_m: int  # while d is varied
    embed_m: tuple[int, ...]
    step_k: tuple[int, ...]
    step_n: tuple[int, ...]
    step_e: tuple[int, ...]
    step_rows: int  # of 𝒵′
    # a cell of a table: methods × seeds
    cell_train: int
    cell_test: int
    cell_rounds: int
    cell_seeds: int


_CPU = Sizes(
    repeats=3,
    side=28,
    majority=1500,
    steps=100,
    modes={"eager": (1, 4)},
    resnet=(),
    resnet_majority=0,
    rounds=3,
    trainings=2,
    fits=(1,),
    test=2500,
    search=(1_000, 5_000, 20_000),
    search_alone=(),
    search_m=(1_000, 2_000, 4_000, 8_000, 16_000),
    search_d=(30, 60, 120, 240, 480),
    at_m=4_000,
    embed_m=(1_000, 2_000, 4_000, 8_000),
    step_k=(1, 2, 5, 10, 20),
    step_n=(10, 20, 50, 100),
    step_e=(1, 2, 4, 8),
    step_rows=6_000,
    cell_train=6_000,
    cell_test=1_000,
    cell_rounds=1,
    cell_seeds=2,
)
_QUICK_CPU = replace(
    _CPU,
    repeats=2,
    trainings=1,
    majority=300,
    steps=20,
    test=1_000,
    search=(1_000, 5_000),
    search_m=(500, 1_000, 2_000, 4_000),
    search_d=(30, 120, 480),
    at_m=2_000,
    embed_m=(500, 1_000, 2_000),
    step_k=(1, 5, 20),
    step_n=(10, 30, 100),
    step_e=(1, 2, 4),
    cell_seeds=1,
)
_GPU = replace(
    _CPU,
    repeats=2,
    majority=6_000,
    steps=400,
    modes={"eager": (1, 10), "graph": (1, 10, 40), "compile": (1, 10, 40)},
    resnet=("graph", "graph, bf16", "compile, bf16"),
    resnet_majority=1_500,
    fits=(1, 10),
    test=10_000,
    search_alone=(100_000, 1_000_000),
    search_m=(1_000, 4_000, 16_000, 64_000, 256_000),
    at_m=16_000,
    embed_m=(4_000, 16_000, 64_000, 256_000),
    step_k=(1, 2, 5, 10, 20, 40),
    step_e=(1, 2, 5, 10, 20, 40),
    step_rows=24_000,
    cell_train=60_000,
    cell_test=10_000,
    cell_rounds=3,
    cell_seeds=10,
)
_QUICK_GPU = replace(
    _GPU,
    repeats=1,
    trainings=1,
    modes={"eager": (1, 10), "graph": (1, 10, 40)},
    resnet=("graph", "graph, bf16"),
    search=(1_000, 5_000),
    search_alone=(100_000,),
    search_m=(1_000, 4_000, 16_000, 64_000),
    embed_m=(4_000, 16_000, 64_000),
    step_k=(1, 5, 20),
    step_n=(10, 30, 100),
    step_e=(1, 10, 40),
)


def sizes_for(device: torch.device, *, quick: bool) -> Sizes:
    if device.type == "cuda":
        return _QUICK_GPU if quick else _GPU
    return _QUICK_CPU if quick else _CPU
