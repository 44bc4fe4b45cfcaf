"""Many trainings, as many at once as the device gains from and has memory for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn, optim
from torch.nn.modules.dropout import _DropoutNd

from .errors import InputError
from .network import Network, has_batch_norm, is_wide
from .stages import Member, train_members
from .turns import train_in_turns

__all__ = ["how_many", "train_together", "why_in_turn"]


# whose step does the same to every number, whatever tensor it is part of
_ELEMENTWISE = (
    optim.SGD,
    optim.Adam,
    optim.AdamW,
    optim.NAdam,
    optim.RAdam,
    optim.Adamax,
    optim.RMSprop,
    optim.Adagrad,
    optim.Adadelta,
)


def how_many(trainings: int, device: torch.device, size: int = 0) -> int:
    """At once: all on a GPU, which small networks leave idle; one where there is no GPU.

    ``size`` is that of the samples of one, in bytes; together they may take half the memory.
    """
    if device.type != "cuda":
        return 1
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, min(trainings, free // 2 // max(size, 1)))


def why_in_turn(
    network: Network,
    optimizer: Callable[[Iterable[nn.Parameter]], optim.Optimizer],
    *,
    even: bool,  # all take as many steps
) -> str:
    """The reason why such networks cannot be trained at once, if there is one."""
    made = optimizer(network.parameters())
    name = type(made).__name__
    if type(made) not in _ELEMENTWISE:
        return f"{name} may look at tensors as a whole, and those of a stack hold all networks"
    if not even and not isinstance(made, optim.SGD):
        return f"{name} counts steps, of which these trainings take different numbers"
    if has_batch_norm(network.classifier):
        return "the classifier has batch norm, which would see what pads the others' neighbours"
    return ""


def _overlaps(network: Network) -> bool:
    """Whether such networks are better trained in turns than in a stack."""
    # recordings share the place that dropout's draws are counted in, so they must not overlap
    draws = any(isinstance(module, _DropoutNd) for module in network.modules())
    return is_wide(network) and not draws


def train_together(
    makers: Sequence[Callable[[], Member]],  # each gives its member as it is before training
    *,
    at_once: int,
    **options: Any,  # of train_members
) -> list[Member]:
    """Train them all; where memory does not suffice for ``at_once``, half as many at once.

    Small networks are stacked. Wide ones, whose fast layout a stack cannot have, take turns.
    """
    if at_once < 1:
        raise InputError(f"at_once must be 1 or more, found {at_once}")
    done: list[Member] = []
    while len(done) < len(makers):
        members = [make() for make in makers[len(done) : len(done) + at_once]]
        in_turns = len(members) > 1 and _overlaps(members[0].network)
        try:
            (train_in_turns if in_turns else train_members)(members, **options)
        except torch.OutOfMemoryError:
            if len(members) == 1:
                raise
            at_once = (len(members) + 1) // 2
            logging.getLogger(__name__).warning(
                "out of memory with %d trainings at once; going on with %d", len(members), at_once
            )
            continue
        done += members
    return done
