"""Several trainings that take turns: on a GPU they overlap, as each has a stream of its own.

A wide network (ResNet-32) is no faster in a stack, but alone it leaves most of a GPU idle: its
kernels are short and follow each other. So every training is given its steps, many at a time,
before anybody waits for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

from .stages import Member, in_parts

__all__ = ["train_in_turns"]

_DONE = object()

Lane = Callable[[], AbstractContextManager[Any]]


def train_in_turns(members: Sequence[Member], **options: Any) -> None:
    """Train each by itself, some steps of one after some of the other; each ends as if alone.

    ``options`` are those of `train_members`. Unlike in a stack, networks and stages may differ.
    """
    device = members[0].network.device
    trainings = [in_parts([one], sharing=len(members), **options) for one in members]
    waiting = [(one, _lane(device)) for one in trainings]
    try:
        while waiting:
            waiting = [(one, lane) for one, lane in waiting if _goes_on(one, lane)]
    finally:
        for one in trainings:  # of those that are not done, where one has failed
            one.close()
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # whoever reads the networks is on no lane


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
