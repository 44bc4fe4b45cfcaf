"""DOS, and plain training beside it from the same weights; a stop keeps what is done so far."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from ..calibration import temperature
from ..errors import InputError, Stopped, TrainingError
from ..fitting import fit
from ..history import History, Round
from ..memory import is_out_of_memory
from ..metrics import measure
from ..network import Network, logits_of
from ..peers import Peers
from ..plan import Plan
from .preparing import Task
from .unfinished import Unfinished
from .witness import Witness

__all__ = ["FINISHED", "Groups", "OnFound", "OnRound", "OnSteps", "Outcome", "train"]

OnRound = Callable[[str, int, Round], None]  # "dos" or "plain", its number from 1 on, the round
OnFound = Callable[[str, list[Round]], None]  # "dos" or "plain", its rounds
OnSteps = Callable[[str, int, int, int], None]  # … its number, its steps so far, and all of them
Groups = dict[str, dict[str, float]]  # group -> measure -> value

FINISHED = "finished"


@dataclass(eq=False)
class Outcome:
    """What came of a task. Methods are keyed "dos" and, where it was trained, "plain"."""

    status: str  # "finished", or where it was stopped and why
    temperature: float  # of "dos"
    seconds: float
    witness: Witness
    error: TrainingError | None = None  # where that is why it was stopped
    networks: dict[str, Network] = field(default_factory=dict)
    histories: dict[str, History] = field(default_factory=dict)
    probabilities: dict[str, Tensor] = field(default_factory=dict)  # (t, n)  on validation
    measures: dict[str, Groups] = field(default_factory=dict)


def train(
    task: Task,
    on_round: OnRound | None = None,
    *,
    unfinished: Unfinished | None = None,  # to go on from, and to keep what is needed to go on
    on_found: OnFound | None = None,  # what was trained before; the training goes on from there
    on_steps: OnSteps | None = None,  # how far a round is, now and then; needs ``unfinished``
    peers: Peers | None = None,  # processes that train it together; the first has the outcome
) -> Outcome | None:
    """Train; nothing comes back where it was stopped before the first round was done.

    Ctrl-C, ``unfinished.stop()``, or a loss that is no number any more, ends it with the weights
    of the last whole round. A baseline that was stopped half-way is left out: it would be no fair
    comparison. It begins with the same plain rounds as DOS: where they are kept, it goes on from
    there.
    """
    start, witness, peers = time.perf_counter(), Witness(task, unfinished), peers or Peers()
    outcome = Outcome(FINISHED, 1.0, 0.0, witness)
    plain = Plan(torch.zeros_like(task.plan.k), torch.ones_like(task.plan.r), task.plan.minority)
    plans = {"dos": task.plan} | ({"plain": plain} if task.settings.baseline else {})
    for method, plan in plans.items():
        network = copy.deepcopy(task.network)
        shared = task.rounds if unfinished and method == "plain" else 0
        look = witness if method == "dos" else None
        watch = _Watch(method, network, look, on_round, on_found, shared)
        told = partial(on_steps, method) if on_steps else None
        kept = unfinished.checkpoints(method, watch.take_up, told) if unfinished else None
        if unfinished and method == "dos" and "plain" in plans:
            unfinished.begin_also("plain", rounds=task.rounds, plan=plain)
        try:
            history = fit(
                network,
                task.train,
                plan,
                rounds=task.rounds,
                validation=task.validation,
                stop=task.stop,
                on_round=watch,
                seed=task.settings.seed,
                checkpoint=kept,
                peers=peers,
                **task.options,
                **(task.form if method == "dos" else {}),
            )
        except (KeyboardInterrupt, Stopped, TrainingError) as error:
            done = len(watch.rounds)
            if not isinstance(error, KeyboardInterrupt):  # which not all may have heard
                done = peers.from_first(partial(len, watch.rounds))
            outcome.status = _stopped(method, done, 2 * task.rounds, error)
            outcome.error = error if isinstance(error, TrainingError) else None
            if method == "dos" and not done:
                if isinstance(error, TrainingError):
                    raise
                return None
            if method == "plain" or not peers.first:
                break
            watch.put_back()
            history = History(watch.rounds)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise InputError(
                f"the memory of {task.device} must hold a batch, found that it does not; lower "
                "--batch-size or --size, or choose --device cpu"
            ) from None
        finally:
            outcome.seconds += watch.seconds_before
        outcome.networks[method], outcome.histories[method] = network, history
        if outcome.status != FINISHED:
            break
    for method, network in outcome.networks.items() if peers.first else ():
        logits = logits_of(network, task.validation.x).cpu()
        if method == "dos":
            outcome.temperature = temperature(logits, task.validation.y)
        outcome.probabilities[method] = logits.softmax(1)
        outcome.measures[method] = grouped(logits.softmax(1), task.validation.y, task.plan)
    outcome.seconds += time.perf_counter() - start
    return outcome


def grouped(probabilities: Tensor, y: Tensor, plan: Plan) -> Groups:
    """Measures of the classes that the plan favours, of the others, and of all."""
    report, minority = measure(probabilities, y), plan.minority.numpy()
    groups = {"minority": minority, "majority": ~minority} if minority.any() else {}
    found = {name: report.mean(group) for name, group in groups.items()}
    return found | {"all": report.mean()}


def _stopped(method: str, done: int, rounds: int, error: BaseException) -> str:
    what = "" if method == "dos" else " of the baseline, which is left out"
    reason = f": {error}" if isinstance(error, TrainingError) else ""
    return f"stopped after round {done} of {rounds}{what}{reason}"


class _Watch:
    """Keeps the rounds that are done and the weights after the last of them."""

    def __init__(
        self,
        method: str,
        network: Network,
        witness: Witness | None,
        on_round: OnRound | None,
        on_found: OnFound | None,
        shared: int,  # first rounds that are those of another method
    ) -> None:
        self._method, self._network, self._witness = method, network, witness
        self._on_round, self._on_found, self._shared = on_round, on_found, shared
        self.seconds_before = 0.0  # in processes before this one
        self._kept: tuple[list[Round], dict[str, Tensor]] = ([], {})  # a stop cannot part them

    @property
    def rounds(self) -> list[Round]:
        return self._kept[0]

    def take_up(self, history: History, weights: dict[str, Tensor]) -> None:
        """What a process before this one has done."""
        self._kept = list(history.rounds), weights
        own = self.rounds[self._shared :]
        self.seconds_before = sum(one.seconds for one in own)
        if self._on_found:
            self._on_found(self._method, own)

    def __call__(self, one: Round) -> None:
        weights = {name: t.detach().clone() for name, t in self._network.state_dict().items()}
        self._kept = [*self.rounds, one], weights
        if self._witness:
            self._witness.look(self._network, len(self.rounds))
        if self._on_round:
            self._on_round(self._method, len(self.rounds), one)

    def put_back(self) -> None:
        self._network.load_state_dict(self._kept[1])
