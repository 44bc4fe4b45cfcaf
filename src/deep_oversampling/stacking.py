"""E networks of one shape as one: the same step for all of them, each on a batch of its own."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.functional import pad
from torch.optim import Optimizer

from .errors import InputError
from .network import Network
from .trees import changed, leaves, outline

__all__ = ["Stack"]

_MOST_COLUMNS = 2**21  # numbers, of each network: 8 MiB


class Stack:
    """Parameters and buffers of E networks, (E, …), of which every network keeps its own slice.

    The networks' own tensors become views of the stacked ones, so whoever looks at a network
    while the stack is trained (to embed the samples, to judge it) sees it as it is now; `part`
    gives them tensors of their own again. A stack of one is the network itself.
    """

    def __init__(self, networks: Sequence[Network]) -> None:
        self.networks = list(networks)
        self._stacked: dict[str, Tensor] = {}
        self._at_once: dict[Hashable, bool] = {}  # objective -> whether it can be vmapped
        if len(self.networks) == 1:
            self._asked = _Asked(self.networks[0])
            return
        self._asked = _Asked(_by_products(self.networks[0]))
        _check_alike(self.networks)
        states = [_tensors(network) for network in self.networks]
        for name, first in states[0].items():
            tensor = torch.stack([state[name].detach() for state in states])
            for e, state in enumerate(states):
                state[name].data = tensor[e]
            if isinstance(first, nn.Parameter):
                tensor = nn.Parameter(tensor, requires_grad=first.requires_grad)
            self._stacked[name] = tensor

    def __len__(self) -> int:
        return len(self.networks)

    def optimizer(self, make: Callable[[Iterable[nn.Parameter]], Optimizer]) -> Optimizer:
        """The optimiser that is made for the first network, stepping on all of them.

        Whoever makes it may look at the parameters (no weight decay for vectors, say), so it is
        shown those of an ordinary network.
        """
        own = dict(self.networks[0].named_parameters())
        optimizer = make(own.values())
        name_of = {parameter: name for name, parameter in own.items()}
        if len(self) > 1:
            for group in optimizer.param_groups:
                group["params"] = [self._stacked[name_of[p]] for p in group["params"]]
        return optimizer

    def parameters(self) -> list[nn.Parameter]:
        """(E, …), or those of the only network."""
        if len(self) == 1:
            return list(self.networks[0].parameters())
        return [tensor for tensor in self._stacked.values() if isinstance(tensor, nn.Parameter)]

    def buffers(self) -> list[Tensor]:
        """What training changes beside them: the statistics of batch norm."""
        return [t for t in self._stacked.values() if not isinstance(t, nn.Parameter)]

    def losses(self, objective: Any, batch: Any) -> tuple[Tensor, ...]:
        """What the objective says, (E, b) each, of trees whose tensors are (E, …)."""
        asked = (objective, batch)
        if len(self) == 1:
            return tuple(ell.unsqueeze(0) for ell in self._asked(*changed(asked, itemgetter(0))))

        def of_one(state: dict[str, Tensor], tensors: list[Tensor]) -> tuple[Tensor, ...]:
            own = iter(tensors)
            given = changed(asked, lambda _: next(own))
            return tuple(functional_call(self._asked, state, given))

        state = {f"network.{name}": tensor for name, tensor in self._stacked.items()}
        tensors = leaves(asked)
        at_once = vmap(of_one, randomness="different")  # dropout: each its own
        if torch.compiler.is_compiling():
            return tuple(at_once(state, tensors))
        kind = outline(objective)
        if kind not in self._at_once:
            self._at_once[kind] = self._tried(at_once, state, tensors)
        if self._at_once[kind]:
            return tuple(at_once(state, tensors))
        each = [
            of_one({name: t[e] for name, t in state.items()}, [t[e] for t in tensors])
            for e in range(len(self))
        ]
        return tuple(torch.stack(column) for column in zip(*each, strict=True))

    def _tried(self, at_once: Callable[..., Any], *given: Any) -> bool:
        """Whether it can be done; what it does to buffers is undone."""
        before = [buffer.clone() for buffer in self.buffers()]
        try:
            with torch.no_grad():
                at_once(*given)
            return True
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            level = logging.DEBUG if False in self._at_once.values() else logging.WARNING  # once
            logging.getLogger(__name__).log(
                level,
                "the members of a stack are computed one after the other in every step, as this "
                "network or loss cannot be computed for all at once: %s",
                str(error).partition("\n")[0],
            )
            return False
        finally:
            for buffer, old in zip(self.buffers(), before, strict=True):
                buffer.copy_(old)

    def part(self) -> None:
        """Every network for itself again."""
        if len(self) > 1:
            for network in self.networks:
                for tensor in _tensors(network).values():
                    tensor.data = tensor.data.clone()

    def train(self) -> None:
        for network in (*self.networks, self._asked):
            network.train()

    def eval(self) -> None:
        for network in (*self.networks, self._asked):
            network.eval()


class _Asked(nn.Module):
    """The objective as a module, so that ``functional_call`` can give it other parameters."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, objective: Any, batch: Any) -> tuple[Tensor, ...]:
        return tuple(objective(self.network, batch))


class _Affine(nn.Linear):
    """A linear layer in two kernels; in a stack, torch's own multiplies its result by 1 as well."""

    def forward(self, input: Tensor) -> Tensor:
        product = input @ self.weight.T
        return product if self.bias is None else product + self.bias


class _Products(nn.Conv2d):
    """A convolution as a product of matrices.

    In a stack a convolution becomes one with E groups, for which a GPU has slow kernels; E small
    products are faster while the columns, every patch of the input, are few.
    """

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        columns = self._columns(input)
        if columns.numel() > _MOST_COLUMNS:
            grouped: Tensor = super()._conv_forward(input, weight, bias)
            return grouped
        _, _, _, b, height, width = columns.shape  # (c, k, k, b, h, w)
        product = weight.flatten(1) @ columns.reshape(weight[0].numel(), -1)
        product = product if bias is None else product + bias.unsqueeze(1)
        found: Tensor = product.view(-1, b, height, width).transpose(0, 1)
        return found

    def _columns(self, x: Tensor) -> Tensor:
        patches = pad(x, self._reversed_padding_repeated_twice)
        for axis, size, step in zip((2, 3), self.kernel_size, self.stride, strict=True):
            patches = patches.unfold(axis, size, step)
        return patches.permute(1, 4, 5, 0, 2, 3)


def _is_plain(layer: nn.Conv2d) -> bool:
    """Of one group and many channels: a stack of one-channel layers is depthwise, which is fast."""
    dense = layer.groups == 1 and layer.dilation == (1, 1) and layer.in_channels > 1
    return dense and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


def _by_products(network: Network) -> Network:
    """A twin, for other parameters than its own, whose layers are fast in a stack."""
    twin = copy.deepcopy(network)
    for module in twin.modules():
        if type(module) is nn.Linear:
            module.__class__ = _Affine
        elif type(module) is nn.Conv2d and _is_plain(module):
            module.__class__ = _Products
    return twin


def _tensors(network: Network) -> dict[str, Tensor]:
    return {**dict(network.named_parameters()), **dict(network.named_buffers())}


def _check_alike(networks: Sequence[Network]) -> None:
    """Of the same layers; only the values of their tensors may differ."""
    if any(_kind(network) != _kind(networks[0]) for network in networks):
        raise InputError(
            "networks must be of one shape to be trained at once, found different ones; make them "
            "with the same function and other seeds"
        )


def _kind(network: Network) -> list[object]:
    """All that a stack would take from the first of its networks for all of them."""
    found: list[object] = [str(network)]
    for name, tensor in _tensors(network).items():
        found.append((name, tensor.shape, tensor.dtype, tensor.requires_grad))
    for module in network.modules():
        plain = (int, float, str, tuple)
        own = {name: value for name, value in vars(module).items() if isinstance(value, plain)}
        found.append({name: value for name, value in own.items() if name != "training"})
    return found
