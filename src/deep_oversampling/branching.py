"""Trainings that begin alike: one is trained from the start, the others go on from there."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Protocol

import torch
from torch.optim import Optimizer

from .errors import TrainingError
from .history import History
from .network import Network
from .optimizer_state import keep_state, put_state
from .snapshots import Snapshot
from .training import weights_of

__all__ = ["Growing", "Trunk"]


class Trunk:
    """The first rounds of trainings that begin with the same weights, draws and stages."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.done: Snapshot | None = None  # by the first of them


class Branch(Protocol):
    """One of them."""

    network: Network
    history: History
    error: TrainingError | None
    trunk: Trunk | None


class Growing:
    """What a training loop does with the trunks of its members: nothing, if they have none.

    All go on from them or none does, as they are at the same round.
    """

    def __init__(self, members: Sequence[Branch], optimizer: Optimizer) -> None:
        self._members, self._optimizer = members, optimizer
        trunks = [m.trunk for m in members if m.trunk and m.history.rounds]
        self._from = [trunk.done for trunk in trunks if trunk.done]
        assert len(self._from) in (0, len(members))
        self.rounds = self._from[0].rounds if self._from else 0  # finished before

    def enter(self, t: int) -> None:
        """Round t begins; the first after a trunk, with what the optimiser had learned by then."""
        if not self._from or t != self.rounds:
            return
        alone = len(self._from) == 1
        tensors = {
            name: tensor if alone else torch.stack([one.optimizer[name] for one in self._from])
            for name, tensor in self._from[0].optimizer.items()
        }
        put_state(self._optimizer, tensors, {})

    def leave(self, t: int) -> None:
        """t rounds are finished: whose trunk ends here keeps what it has become."""
        wanting = [e for e, member in enumerate(self._members) if _wants(member, t)]
        tensors = keep_state(self._optimizer)[0] if wanting else {}
        for e in wanting:
            member = self._members[e]
            own = tensors if len(self._members) == 1 else {n: one[e] for n, one in tensors.items()}
            assert member.trunk is not None
            history, weights = copy.deepcopy(member.history), weights_of(member.network)
            member.trunk.done = Snapshot(t, history, weights, own)


def _wants(member: Branch, t: int) -> bool:
    trunk = member.trunk
    return trunk is not None and trunk.rounds == t and not trunk.done and not member.error
