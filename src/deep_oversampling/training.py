"""One loop for both tasks, for one network or for E of them: the only optimizer.step()."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .augmentation import Augmentation
from .cuda_graphs import CudaGraphs
from .engine import Engine
from .errors import InputError, TrainingError
from .memory import free_memory, is_out_of_memory, is_recording
from .network import Network, has_batch_norm, is_wide
from .objectives import Objective
from .peers import Peers
from .presenting import Chunk, Presentation, Table, at
from .replaying import Replay
from .seeding import Sittings, random_states
from .stacking import Stack
from .trees import joined

__all__ = ["Between", "Halfway", "LastGood", "Outcome", "Trainer", "finished", "weights_of"]

T = TypeVar("T")

Outcome = tuple[float, float] | TrainingError  # means of ℓ_g and λℓ_f, or the end of a training

_STEPS_AT_ONCE = 4  # on a CPU, where steps may be slow, and somebody waits for a word between them


@dataclass(frozen=True, eq=False)
class Halfway:
    """How far a round is, between two steps."""

    step: int  # taken
    losses: Tensor  # (step, E, 2)
    random: dict[str, Tensor]  # the state of torch's generators, which dropout draws from


# given what tells how far a round is, its steps so far, and all of them
Between = Callable[[Callable[[], Halfway], int, int], None]


class Trainer:
    """Trains a network, or a stack of E of them at once; the only optimizer.step().

    A step is a function of parameters, batch and draws alone: shapes are fixed and nothing is
    read back from the device until a round is over. So it can be recorded and replayed.
    """

    def __init__(
        self,
        networks: Sequence[Network],
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer],
        *,
        engine: Engine | None = None,
        peers: Peers | None = None,  # processes that train the same network, each on some rows
    ) -> None:
        self.networks, self._engine = list(networks), engine or Engine()
        self.peers = peers or Peers()
        device = self.networks[0].device
        self._engine.check(device)
        wide = len(self.networks) == 1 and device.type == "cuda" and is_wide(self.networks[0])
        if wide:
            _lay_out(self.networks[0], torch.channels_last)
        self._stack = Stack(self.networks)
        self.optimizer = self._stack.optimizer(optimizer)
        alone = self.peers.size == 1  # others do not take part in a recording
        records = self._engine.replay and device.type == "cuda" and alone
        self._steady = records or self._engine.compile
        recorder = CudaGraphs(device, self._objection, try_convolutions=wide) if records else None
        self._replay = Replay(self._step, recorder)
        self._losses = self._engine.compiled(self._losses_at)
        if records:
            _for_replays(self.optimizer)

    def train_round(
        self, tables: Sequence[Table | None], objectives: Sequence[Objective], **options: Any
    ) -> list[Outcome]:
        """`train_in_parts`, all of it."""
        return finished(self.train_in_parts(tables, objectives, **options))

    def train_in_parts(
        self,
        tables: Sequence[Table | None],  # None: the member is left as it is
        objectives: Sequence[Objective],
        *,
        batch_size: int,
        generators: Sequence[torch.Generator],
        augment: Augmentation | None = None,
        images_per_row: int = 1,
        most: int | None = None,  # steps until it stops; default: a chunk
        since: Halfway | None = None,  # the round goes on from there
        between: Between | None = None,  # called now and then
    ) -> Generator[None, None, list[Outcome]]:
        """Present every row of the tables once; each member's means of ℓ_g and λℓ_f, or its end.

        It stops after every chunk of steps, when a GPU has been told of them but nobody has
        waited for it yet, so that it may be told of another training's. With ``augment`` every
        presentation of a sample is a changed copy of its own. A loss or weight that is not
        finite is found when the round is over; the error says at which step it began.
        """
        device = self.networks[0].device
        presentation = Presentation(
            tables,
            batch_size=batch_size,
            generators=generators,
            augment=augment,
            images_per_row=images_per_row,
            device=device,
            steady=self._steady,
            peers=self.peers,
        )
        objective = joined(objectives, lambda each: torch.stack([t.to(device) for t in each]))
        self._uneven = len(set(presentation.steps) - {0}) > 1
        losses = [since.losses.to(device)] if since else []
        at_once = _STEPS_AT_ONCE if between and device.type == "cpu" else most
        self._stack.train()
        try:
            states = since.random if since and self.peers.first else None  # it alone kept them
            sittings = Sittings(generators[0], states, which=self.peers.rank)
            for chunk in presentation.chunks(since.step if since else 0, at_once):
                with sittings.sit():
                    losses.append(self._run(objective, chunk))
                    if between:
                        done = sum(map(len, losses))
                        between(partial(_halfway, losses), done, max(presentation.steps))
                yield
        finally:
            self._stack.eval()
        if self.peers.size > 1:  # batch norm may have seen other rows in each
            self.peers.as_first(list(self.networks[0].buffers()))
        return self._outcomes(torch.cat(losses), presentation.rows, presentation.steps)

    def _run(self, objective: Objective, chunk: Chunk) -> Tensor:  # (steps, E, 2)
        groups = self.optimizer.param_groups
        numbers = [tuple((k, v) for k, v in g.items() if k != "params") for g in groups]
        return self._replay.run(objective, chunk, kind=repr(numbers))

    def _losses_at(
        self, objective: Objective, batch: Any, share: Tensor, step: int | Tensor
    ) -> Tensor:  # (E, 2)
        """What can be compiled as a whole; choosing the step is part of it, and costs nothing."""
        ell_g, ell_f, *weights = self._stack.losses(objective, at(batch, step))
        share = at(share, step)
        if weights:  # the mean of the rows that are no padding, by their weights
            whole = (share * weights[0]).sum(1, keepdim=True)
            whole = self.peers.total(whole) if self.peers.total else whole
            share = share * weights[0] / whole
        return (torch.stack([ell_g, ell_f], 2) * share.unsqueeze(2)).sum(1)

    def _step(
        self,
        objective: Objective,  # a tree of (E, …)
        chunk: Chunk,
        step: int | Tensor,
    ) -> Tensor:  # (E, 2)
        """Forward, backward and an update of all that are awake."""
        if self._engine.compile and not isinstance(step, Tensor):
            step = torch.tensor([step], device=chunk.share.device)  # a number would be compiled in
        awake = chunk.awake
        kept = [] if awake is None else [(tensor, tensor.clone()) for tensor in self._changing()]
        ell = self._backward(objective, chunk, step).detach()
        if self.peers.size > 1:
            # not by DistributedDataParallel: its hooks sit on a module's forward, and a step calls
            # f, g and the limit on the pull by themselves
            gradients = [p.grad for p in self._stack.parameters() if p.grad is not None]
            self.peers.add_up([ell, *gradients])
        self.optimizer.step()
        for tensor, before in kept:
            there = awake.view(-1, *[1] * (tensor.ndim - 1))  # type: ignore[union-attr]
            tensor.copy_(torch.where(there, tensor, before))
        return ell

    def _backward(self, objective: Objective, chunk: Chunk, step: int | Tensor) -> Tensor:  # (E, 2)
        """Where memory does not suffice, in twice as many parts; nothing has changed by then."""
        while True:
            self.optimizer.zero_grad()
            try:
                with self._engine.precision(chunk.share.device):
                    ell: Tensor = self._losses(objective, chunk.batch, chunk.share, step)
                ell.sum().backward()
                return ell
            except RuntimeError as error:
                if not is_out_of_memory(error) or not self._can_split(chunk.share.shape[2]):
                    raise
            self.optimizer.zero_grad()  # not in the handler: the error holds on to memory
            free_memory(chunk.share.device)
            network = self.networks[0]
            network.parts *= 2
            logging.getLogger(__name__).warning(
                "out of memory with a batch of %d: the network takes it in %d parts from here on, "
                "which costs time and changes nothing but rounding",
                chunk.share.shape[2],
                network.parts,
            )

    def _can_split(self, rows: int) -> bool:
        """A stack is halved elsewhere, batch norm would see other batches, a recording stands."""
        alone = len(self.networks) == self.peers.size == 1 and not self._engine.compile
        network = self.networks[0]
        mixes = has_batch_norm(network.embedder)
        return alone and not mixes and network.parts < rows and not is_recording()

    def _changing(self) -> list[Tensor]:
        """All that a step changes, a slice for every member."""
        stack = self._stack
        states = [value for state in self.optimizer.state.values() for value in state.values()]
        tensors = [value for value in states if isinstance(value, Tensor) and value.ndim]
        if self._uneven and len(tensors) < sum(value is not None for value in states):
            raise InputError(  # who is lost sleeps for good: no count matters to them
                "networks that take different numbers of steps can only be trained at once by an "
                f"optimiser that does not count them, found {type(self.optimizer).__name__}; use "
                "SGD or train them one after the other"
            )
        return [*(p.data for p in stack.parameters()), *stack.buffers(), *tensors]

    def _outcomes(
        self,
        losses: Tensor,  # (steps, E, 2)
        rows: Tensor,  # (steps, E)  that counted
        steps: Sequence[int],
    ) -> list[Outcome]:
        bad = (~losses.isfinite().all(2) & (rows > 0)).cpu()
        sums = (losses * rows.unsqueeze(2)).masked_fill(rows.unsqueeze(2) == 0, 0.0).sum(0)
        means = (sums / rows.sum(0).clamp(min=1).unsqueeze(1)).tolist()
        broken = (~self._finite()).tolist()
        found: list[Outcome] = []
        for e, (ell_g, ell_f) in enumerate(means):
            if broken[e] or bool(bad[:, e].any()):
                step = int(bad[:, e].long().argmax()) + 1 if bool(bad[:, e].any()) else steps[e]
                found.append(
                    TrainingError(
                        f"the loss must stay finite, found NaN or infinity at step {step} of "
                        f"{steps[e]}; lower the learning rate, the pull λ or its limit"
                    )
                )
            else:
                found.append((ell_g, ell_f))
        return found

    def _finite(self) -> Tensor:  # (E,)
        parameters = self._stack.parameters()
        if len(self.networks) == 1:
            return torch.stack([p.isfinite().all() for p in parameters]).all().unsqueeze(0)
        return torch.stack([p.isfinite().view(len(p), -1).all(1) for p in parameters]).all(0)

    def start_anew(self) -> None:
        """The optimiser forgets, and with its state go the recordings that write to it."""
        self.optimizer.state.clear()
        self._replay.forget()

    def close(self) -> None:
        """The networks for themselves again; what was recorded lets go of its memory."""
        self.optimizer.zero_grad()
        self._stack.part()
        self._replay.forget()
        for network in self.networks:
            network.parts = 1
            _lay_out(network, torch.contiguous_format)

    def _objection(self) -> str:
        """Why steps cannot be recorded, if the optimiser keeps something that would stand still."""
        device = self.networks[0].device
        for state in self.optimizer.state.values():
            for name, value in state.items():
                still = isinstance(value, int | float) and not isinstance(value, bool)
                if still or (isinstance(value, Tensor) and value.device != device):
                    return f"{type(self.optimizer).__name__} keeps {name!r} off the device"
        return ""


def finished(parts: Generator[None, None, T]) -> T:
    """What comes of it, without a stop in between.

    >>> def adding():
    ...     yield
    ...     return 1 + 1
    >>> finished(adding())
    2
    """
    while True:
        try:
            next(parts)
        except StopIteration as end:
            value: T = end.value
            return value


def _halfway(losses: list[Tensor]) -> Halfway:
    so_far = torch.cat(losses)
    return Halfway(len(so_far), so_far, random_states())


def _lay_out(network: Network, layout: torch.memory_format) -> None:
    network.to(memory_format=layout)  # type: ignore[call-overload]


def _for_replays(optimizer: Optimizer) -> None:
    """Adam and its kin must be told that they are recorded; one kernel for all is the fastest."""
    for group in optimizer.param_groups if not optimizer.state else []:
        if "capturable" in group:
            group["capturable"] = True
        if "fused" in group and group["fused"] is None and group["foreach"] is None:
            group["fused"] = True


def weights_of(network: Network) -> dict[str, Any]:
    """A copy of its weights and buffers, for load_state_dict."""
    return {  # of slices: copied whole, each would copy the stack
        name: value.clone() if isinstance(value, Tensor) else copy.deepcopy(value)
        for name, value in network.state_dict().items()
    }


class LastGood:
    """The weights from before the current round, put back where training goes wrong."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.keep("before the first round")

    def keep(self, place: str) -> None:
        self._weights, self._place = weights_of(self._network), place

    def put_back(self, error: TrainingError) -> TrainingError:
        """Undo, and say so."""
        self._network.load_state_dict(self._weights)
        return TrainingError(
            f"{self._place}: {error} (the network has its weights from before that again)"
        )
