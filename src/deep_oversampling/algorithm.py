"""Algorithm 1: CNN training with Deep Over-sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from .augmentation import Augmentation
from .engine import Engine
from .errors import DOSError, InputError
from .history import History, Round, spread
from .losses import Loss, entropy
from .metrics import measure
from .network import Network, embed, pick_device, predict
from .objectives import multi_task, single_task
from .oversampling import oversample
from .plan import Plan
from .samples import Samples
from .seeding import Streams, streams
from .stages import Stage, sgd, train_stages

__all__ = ["deep_over_sampling", "fit"]


def deep_over_sampling(
    network: Network,
    samples: Samples,  # 𝒳
    plan: Plan,  # {k_j}, {r_j}
    *,
    rounds: int,  # T
    initial_rounds: int,
    rng: Streams,
    pull: float = 10.0,
    pull_limit: float | None = 0.3,
    weighted: bool = True,
    loss: Loss = entropy,
) -> Iterator[Stage]:
    """Algorithm 1, a stage for every pass; the network is trained between them."""
    for _ in range(initial_rounds):  # line 5: STL(𝒳)
        yield Stage("single", samples, partial(single_task, loss=loss))
    for t in range(rounds):  # line 6
        v = embed(network, samples.x)  # lines 7–9: v_i = f(x_i)
        z = oversample(  # lines 10–21: 𝒩(x), w, 𝒵′
            samples, v, plan, generator=rng("weights", t), weighted=weighted
        )
        objective = multi_task(pull, pull_limit, loss=loss)
        yield Stage("multi", z, objective, embedded=(v, samples.y, samples.n))  # line 22: MTL(𝒵′)


def fit(
    network: Network,
    samples: Samples,
    plan: Plan | None = None,  # default: Plan.automatic, from the class counts
    *,
    rounds: int = 3,  # T
    initial_rounds: int | None = None,  # default: as many as rounds (R11)
    batch_size: int | None = None,  # default: 60, or all samples if there are fewer
    pull: float = 10.0,  # λ (R5)
    pull_limit: float | None = 0.3,  # ‖pull‖ ≤ limit · ‖∇ℓ_g‖ at the embedding; None: no limit
    weighted: bool = True,  # ℓ′_f, ℓ′_g, ρ′ with drawn weights; False: ℓ_f, ℓ_g, ρ
    loss: Loss = entropy,  # in place of ℋ: rivals.focal(), …
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = sgd,
    schedule: Callable[[Optimizer], LRScheduler] | None = None,  # stepped after every round
    augment: Augmentation | None = None,  # of what training sees; v stays that of the samples
    validation: Samples | None = None,
    on_round: Callable[[Round], None] | None = None,
    seed: int = 0,
    device: torch.device | str | None = None,  # default: cuda, mps or cpu, the first there is
    engine: Engine | None = None,  # default: Engine()
) -> History:
    """Train f and g together on fresh synthetic targets every round; the network is changed."""
    if not callable(optimizer):
        raise InputError(
            "optimizer must be a function that makes one from parameters, such as "
            f"lambda p: Adam(p, lr=1e-3), found {type(optimizer).__name__}"
        )
    _check(samples, rounds, initial_rounds, batch_size, pull, pull_limit)
    counts, batch_size = samples.class_counts, batch_size or min(60, len(samples))
    plan = Plan.automatic(counts, names=samples.classes) if plan is None else plan
    plan = plan.fitted_to(counts, samples.classes)
    network.to(pick_device(device))
    samples = samples.to(network.device)
    _check_outputs(network, samples)
    _check_augment(augment, samples)
    rng, spreads = streams(seed), []

    def stages() -> Iterator[Stage]:
        yield from deep_over_sampling(
            network,
            samples,
            plan,
            rounds=rounds,
            initial_rounds=rounds if initial_rounds is None else initial_rounds,
            rng=rng,
            pull=pull,
            pull_limit=pull_limit,
            weighted=weighted,
            loss=loss,
        )
        spreads.append(spread(embed(network, samples.x), samples.y, samples.n))  # at the end

    history = train_stages(
        network,
        stages(),
        batch_size=batch_size,
        rng=rng,
        optimizer=optimizer,
        schedule=schedule,
        augment=augment,
        engine=engine,
        judge=(lambda network: _scores(network, validation, plan)) if validation else None,
        on_round=on_round,
    )
    history.spreads.extend(spreads)
    return history


def _scores(network: Network, data: Samples, plan: Plan) -> dict[str, dict[str, float]]:
    """Measures on validation data, for the classes that the plan favours and the others."""
    report = measure(predict(network, data.x), data.y)
    groups = {"minority": plan.minority.numpy(), "majority": ~plan.minority.numpy()}
    return {name: report.mean(group) for name, group in groups.items() if group.any()}


def _check(
    samples: Samples,
    rounds: int,
    initial_rounds: int | None,
    batch_size: int | None,
    pull: float,
    pull_limit: float | None,
) -> None:
    """Every number at the door."""
    if rounds < 1 or (initial_rounds or 0) < 0:
        raise InputError(
            "rounds must be at least 1 and initial_rounds at least 0, found "
            f"rounds={rounds}, initial_rounds={initial_rounds}"
        )
    if batch_size is not None and not 1 <= batch_size <= len(samples):
        raise InputError(
            f"batch_size must lie between 1 and the number of samples, found {batch_size} "
            f"for {len(samples)} samples; pass a smaller one or leave it out"
        )
    if not 0 <= pull < math.inf or not 0 <= (pull_limit or 0) < math.inf:
        raise InputError(
            "pull and pull_limit must be 0 or more and finite (pull_limit=None for no limit), "
            f"found pull={pull}, pull_limit={pull_limit}"
        )


def _check_outputs(network: Network, samples: Samples) -> None:
    """One sample through the network, so that a misfit is told before the first round."""
    try:
        outputs = predict(network, samples.x[:1]).shape[1]
    except DOSError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"the network must take samples of shape {tuple(samples.x.shape[1:])} and type "
            f"{samples.x.dtype} (uint8 becomes float, other integers stay), found: {error}"
        ) from error
    if outputs != samples.n:
        raise InputError(
            f"the network must have one output for each of the {samples.n} classes, found "
            f"{outputs}; change its classifier"
        )


def _check_augment(augment: Augmentation | None, samples: Samples) -> None:
    """One sample through it, so that a misfit is told before the first round."""
    if augment is None:
        return
    draws = getattr(augment, "draws", None)
    if isinstance(augment, type) or not callable(augment) or not isinstance(draws, int):
        raise InputError(
            "augment must be an object such as CropAndFlip(), a function of a batch and of "
            f"uniform numbers with a number of draws, found {augment!r}"
        )
    x = samples.x[:1]
    found = augment(x, torch.zeros(1, draws, device=x.device))
    if found.shape != x.shape or found.dtype != x.dtype:
        raise InputError(
            f"augment must return a batch like the one it is given, {tuple(x.shape)} of {x.dtype}, "
            f"found {tuple(found.shape)} of {found.dtype}"
        )
