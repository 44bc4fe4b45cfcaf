"""Several trainings that take turns: on a GPU they overlap, as each has a stream of its own.

A wide network (ResNet-32) has its fast layout only outside a stack, but alone it leaves much of a
GPU idle: its kernels are short and follow each other. So every training is given some steps before
anybody waits for one of them; only a few, as a stream has room for so many and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

from .stages import Member, in_parts

__all__ = ["train_in_turns"]

_STEPS_OF_A_TURN = 12  # enough to be busy with while others end a round
_DONE = object()

Lane = Callable[[], AbstractContextManager[Any]]


def train_in_turns(members: Sequence[Member], **options: Any) -> None:
    """Train each by itself, some steps of one after some of the other; each ends as if alone.

    ``options`` are those of `train_members`. Unlike in a stack, networks and stages may differ.
    """
    device = members[0].network.device
    own = {"sharing": len(members), "most": _STEPS_OF_A_TURN, **options}
    trainings = [in_parts([one], **own) for one in members]
    waiting = [(one, _lane(device)) for one in trainings]
    try:
        while waiting:
            waiting = [(one, lane) for one, lane in waiting if _goes_on(one, lane)]
    finally:
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # whoever reads the networks is on no lane
        for one in trainings:  # of those that are not done, where one has failed
            one.close()


def _goes_on(training: Any, lane: Lane) -> bool:
    with lane():
        return next(training, _DONE) is not _DONE


def _lane(device: torch.device) -> Lane:
    """Where a training's work is queued; what was queued before is done before it begins."""
    if device.type != "cuda":
        return nullcontext
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    return partial(torch.cuda.stream, stream)
