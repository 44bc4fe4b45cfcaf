"""Where ``dos compare`` and ``dos reproduce`` run their trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..workers import Place

__all__ = ["GpusPerTask", "ProcessCount", "RayAddress", "chosen_place"]

ProcessCount = Annotated[
    int | None,
    typer.Option(min=1, help="So many at once, on the cores.", show_default="this one alone"),
]
RayAddress = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="On a Ray cluster: HOST:PORT, auto or local."),
]
GpusPerTask = Annotated[
    float, typer.Option(min=0, help="With --ray; a share of one as well. 0: a CPU.")
]


def chosen_place(
    *, processes: int | None, ray: str | None, gpus_per_task: float, device: str | None
) -> Place:
    """Options that contradict each other are refused."""
    from ..errors import InputError
    from ..network import pick_device
    from ..workers import Here, Processes, RayCluster

    if gpus_per_task and ray is None:
        raise InputError("--gpus-per-task is for the tasks of Ray, found no --ray; add --ray local")
    if ray is not None and (processes or device):
        other = "--processes" if processes else "--device"
        raise InputError(
            f"with --ray the cluster decides how many run at once, and --gpus-per-task on which "
            f"device, found {other}; leave it out"
        )
    if ray is not None:
        return RayCluster(ray, gpus_per_task=gpus_per_task)
    if processes is None:
        return Here(device)
    if pick_device(device).type != "cpu":
        raise InputError(
            f"processes share the cores, so the device must be the CPU, found {pick_device(device)}"
            ", which trains all seeds at once by itself; leave --processes out, add --device cpu, "
            "or use several GPUs with --ray local --gpus-per-task 1"
        )
    return Processes(processes)
