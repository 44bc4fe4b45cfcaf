"""What an optimiser has learned, to keep and to go on from; and whether what was kept fits it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["keep_state", "put_state", "state_misfit"]

Tensors = dict[str, Tensor]  # "3.momentum_buffer": of the fourth parameter
Numbers = dict[str, float]
Make = Callable[[Iterable[nn.Parameter]], Optimizer]


def keep_state(optimizer: Optimizer) -> tuple[Tensors, Numbers]:
    """Its state, copied; what is a number and what is a tensor."""
    tensors, numbers = {}, {}
    for i, (parameter, _) in enumerate(_owners(optimizer)):
        for name, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor):
                tensors[f"{i}.{name}"] = value.detach().cpu().clone().contiguous()
            elif isinstance(value, int | float):
                numbers[f"{i}.{name}"] = value
    return tensors, numbers


def put_state(optimizer: Optimizer, tensors: Tensors, numbers: Numbers) -> None:
    """By hand: load_state_dict makes schedulers believe that no step was ever taken."""
    _put(optimizer, {**tensors, **numbers})


def _put(optimizer: Optimizer, found: dict[str, Tensor | float]) -> None:
    owners = _owners(optimizer)
    for key, value in found.items():
        i, _, name = key.partition(".")
        parameter, group = owners[int(i)]
        if isinstance(value, Tensor):  # a copy: steps are counted in place
            value = _placed(value, parameter, bool(group.get("capturable") or group.get("fused")))
        optimizer.state[parameter][name] = value


def _placed(value: Tensor, parameter: Tensor, counted_there: bool) -> Tensor:
    if value.shape == parameter.shape and value.ndim:  # laid out in memory as the parameter is
        return torch.empty_like(parameter, dtype=value.dtype).copy_(value)
    # a count of steps is on the device only where a kernel reads it
    return value.to(parameter.device, copy=True) if value.ndim or counted_there else value.clone()


def state_misfit(
    make: Make,
    network: nn.Module,
    tensors: Tensors,
    numbers: Numbers,
    *,
    halfway: bool = False,  # within a round, where a loss may be NaN before anybody has looked
) -> str:
    """Why an optimiser of the network cannot go on from this state, if it cannot.

    What it keeps is its own affair, so one for a copy of the network takes a step, and shows.
    """
    found: dict[str, Tensor | float] = {**tensors, **numbers}
    fresh = _on_copy(make, network)
    count = len(_owners(fresh or make(network.parameters())))
    known = {str(i) for i in range(count)}
    for key, value in found.items():
        if key.partition(".")[0] not in known:
            return f"{key!r:.80} where the optimiser has {count} parameters"
        if odd := _odd_number(key, value, halfway):
            return f"{odd} as {key!r:.80} of the optimiser"
    return _misfit_in_use(fresh, _on_copy(make, network), found) if fresh else ""


def _misfit_in_use(
    fresh: Optimizer, other: Optimizer | None, found: dict[str, Tensor | float]
) -> str:
    try:
        _step(fresh)
    except Exception:  # one that has needs of its own: then training will tell
        return ""
    kept = keep_state(fresh)
    own: dict[str, Tensor | float] = {**kept[0], **kept[1]}
    there = {key.partition(".")[0] for key in found}  # who had no gradient has no state
    if missing := [key for key in own if key.partition(".")[0] in there and key not in found]:
        return f"no {missing[0]!r:.80} of the optimiser"
    for key, value in found.items():
        if key in own and _kind(value) != _kind(own[key]):
            return f"{_kind(value)} as {key!r} of the optimiser instead of {_kind(own[key])}"
    try:
        if other:
            _put(other, found)
            _step(other)
    except Exception as error:  # whatever an optimiser makes of numbers that cannot be
        return f"a state that the optimiser cannot use ({type(error).__name__})"
    return ""


def _on_copy(make: Make, network: nn.Module) -> Optimizer | None:
    """One that may step as it likes; None where whoever makes it has parameters of his own."""
    copied = list(copy.deepcopy(network).parameters())
    made = make(copied)
    theirs = {id(parameter) for parameter, _ in _owners(made)}
    return made if theirs <= {id(parameter) for parameter in copied} else None


def _step(optimizer: Optimizer) -> None:
    """By gradients of 0."""
    for parameter, _ in _owners(optimizer):
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    optimizer.step()


def _kind(value: Tensor | float) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return "a number"


def _odd_number(key: str, value: Tensor | float, halfway: bool) -> str:
    if isinstance(value, Tensor) and value.ndim:
        return "NaN" if not halfway and bool(value.isnan().any()) else ""
    number = float(value)
    counts = key.endswith(".step")
    return f"{number:g}" if not math.isfinite(number) or (counts and number < 0) else ""


def _owners(optimizer: Optimizer) -> list[tuple[Tensor, dict[str, object]]]:
    return [(p, group) for group in optimizer.param_groups for p in group["params"]]
