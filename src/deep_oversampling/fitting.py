"""fit: Algorithm 1 on a network and samples; fit_many: on E of them at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from .algorithm import deep_over_sampling
from .augmentation import Augmentation
from .beginning import Asked, Beginning
from .checks import (
    check_apart,
    check_asked,
    check_augment,
    check_each,
    check_given,
    check_loss,
    check_numbers,
    check_outputs,
    check_pieces,
    check_shared,
    check_steps,
)
from .engine import Engine
from .errors import InputError, TrainingError
from .history import History, Round
from .losses import Loss, entropy
from .network import Network, pick_device
from .peers import Peers
from .plan import Plan, default_plan, default_tau
from .resuming import Checkpoints
from .samples import Samples
from .shared_norm import shared_batch_norm
from .stages import Schedule, cosine, sgd
from .stopping import EarlyStopping
from .together import how_many, train_together, why_in_turn

__all__ = ["fit", "fit_many"]


def fit(
    network: Network,
    samples: Samples,
    plan: Plan | None = None,  # default: automatic, cautious, with augment k = 0; pieces: in_part
    *,
    rounds: int = 3,  # T
    initial_rounds: int | None = None,  # default: as many as rounds (R11)
    batch_size: int | None = None,  # default: 60, or all samples if there are fewer
    pull: float = 10.0,  # λ (R5)
    pull_limit: float | None = 0.3,  # ‖pull‖ ≤ limit · ‖∇ℓ_g‖ at the embedding; None: no limit
    weighted: bool = True,  # ℓ′_f, ℓ′_g, ρ′ with drawn weights; False: ℓ_f, ℓ_g, ρ
    loss: Loss = entropy,  # in place of ℋ: rivals.focal(), …; with pieces or tau in initial rounds
    pieces: float = 0.0,  # the share of pictures that show a piece of an in-class neighbour
    tau: float | None = None,  # multi-task rounds: ℋ of logits plus τ log π; 0.5 with pieces
    approximate_above: int | None = None,  # classes with more samples are searched by FAISS
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = sgd,
    schedule: Schedule | Literal["cosine"] | None = None,  # stepped after every round
    augment: Augmentation | None = None,  # of what training sees, and of what v is made of
    validation: Samples | None = None,
    stop: EarlyStopping | None = None,  # on validation; the best weights are kept
    on_round: Callable[[Round], None] | None = None,  # JSONLines(path), several(…), …
    seed: int = 0,
    device: torch.device | str | None = None,  # default: cuda, mps or cpu, the first there is
    engine: Engine | None = None,  # default: Engine()
    checkpoint: Checkpoints | Path | str | None = None,  # a folder, to go on from after a crash
    recover: bool = True,  # a round that is lost is made again, once, with a tenth of the rate
    peers: Peers | None = None,  # join_peers(): processes that train the network together
    sync_batch_norm: bool = True,  # it sees their rows too; False: faster, and not the same
) -> History:
    """Train f and g together on fresh synthetic targets every round; the network is changed.

    With a ``checkpoint`` folder a training that was killed goes on where it was when the same
    call is made again, and ends with the same weights as if nothing had happened. It goes on with
    the weights of the checkpoint, whatever weights the network has: a network that is made anew
    without a seed does no harm, and a line in the log says that its weights are not used.

    A round is lost where a loss, a weight or an embedding is no number any more, embeddings have
    collapsed, exploded or vanished, or the loss leaps or comes back. With ``recover`` that is
    written into ``history.mishaps`` and tried once more; lost again, or without, it is a
    `TrainingError`, and the network has the weights from before that round.

    ``pieces=0.5`` is the form for pictures and modern networks: targets and pictures are made of
    the same parts, and classes are levelled in part. What is trained for long and judged evenly
    gains by a margin for rare ones as well, ``tau=1.0`` or more (docs/margin.md).

    With ``peers``, every process makes the same call and ends with the same weights as one process
    would, up to rounding, unless dropout draws or batch norm sees its own rows only. The first
    process alone calls ``on_round`` and writes checkpoints.
    """
    check_each([network], [samples], [plan], [pull], [seed])
    check_given(on_round=on_round)
    counts = samples.class_counts
    plan = plan or default_plan(counts, samples.classes, augment is not None, bool(pieces))
    plan = plan.fitted_to(counts, samples.classes)  # here: its warning names the caller's line
    (found,) = fit_many(
        [network],
        [samples],
        [plan],
        rounds=rounds,
        initial_rounds=initial_rounds,
        batch_size=batch_size,
        pull=[pull],
        pull_limit=pull_limit,
        weighted=weighted,
        loss=loss,
        pieces=pieces,
        tau=tau,
        approximate_above=approximate_above,
        optimizer=optimizer,
        schedule=schedule,
        augment=augment,
        validation=validation,
        stop=stop,
        on_round=None if on_round is None else lambda _, one: on_round(one),
        seeds=[seed],
        device=device,
        engine=engine,
        checkpoint=checkpoint,
        recover=recover,
        peers=peers,
        sync_batch_norm=sync_batch_norm,
    )
    if isinstance(found, TrainingError):
        raise found
    return found


def fit_many(
    networks: Sequence[Network],  # E, of one shape
    samples: Samples | Sequence[Samples],  # the same for all, or each its own
    plans: Sequence[Plan | None] | None = None,
    *,
    rounds: int = 3,
    initial_rounds: int | None = None,
    batch_size: int | None = None,
    pull: float | Sequence[float] = 10.0,
    pull_limit: float | None = 0.3,
    weighted: bool = True,
    loss: Loss = entropy,
    pieces: float = 0.0,
    tau: float | None = None,
    approximate_above: int | None = None,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = sgd,
    schedule: Schedule | Literal["cosine"] | None = None,
    augment: Augmentation | None = None,
    validation: Samples | None = None,
    stop: EarlyStopping | None = None,  # each by itself
    on_round: Callable[[int, Round], None] | None = None,  # e, its round
    seeds: Sequence[int] | None = None,  # default: 0 … E-1
    device: torch.device | str | None = None,
    engine: Engine | None = None,
    at_once: int | None = None,  # default: all on a GPU, one after the other without
    checkpoint: Checkpoints | Path | str | None = None,  # of a single network
    recover: bool = False,  # as in `fit`, for a single network: others would be slowed with it
    peers: Peers | None = None,  # of a single network
    sync_batch_norm: bool = True,  # as in `fit`
) -> list[History | TrainingError]:
    """`fit` for E networks; each ends where it would end alone, and ten cost little more than one.

    They may differ in samples, plan, λ and seed. A training that is lost gives its error instead
    of a history, and the others go on. Dropout is drawn anew for every member of a stack, so there
    a member is as if it had another seed. Where memory does not suffice for all, rounds of the
    first attempt have been reported already when the second begins.
    """
    many = len(networks)
    all_samples = [samples] * many if isinstance(samples, Samples) else list(samples)
    all_plans = [None] * many if plans is None else list(plans)
    given = pull.tolist() if isinstance(pull, Tensor) else pull
    pulls = list(given) if isinstance(given, Iterable) else [given] * many
    seeds = range(many) if seeds is None else seeds
    check_each(networks, all_samples, all_plans, pulls, seeds)
    check_asked(many, rounds, optimizer, recover=recover, kept=checkpoint is not None)
    check_given(initial_rounds=initial_rounds, batch_size=batch_size, pull_limit=pull_limit)
    if isinstance(checkpoint, str | Path):
        checkpoint = Checkpoints(checkpoint)
    total = rounds + (rounds if initial_rounds is None else initial_rounds)
    schedule = cosine(total) if schedule == "cosine" else schedule
    check_given(validation=validation, stop=stop, engine=engine, checkpoint=checkpoint)
    check_given(schedule=schedule, on_round=on_round, approximate_above=approximate_above)
    check_apart(networks)
    check_steps(optimizer(networks[0].parameters()), schedule, total)
    sizes = {batch_size or min(60, len(own)) for own in all_samples}
    if len(sizes) > 1:
        raise InputError(
            "batch_size must be given where samples are few and not as many for all networks, "
            f"found defaults of {sorted(sizes)}"
        )
    peers = peers or Peers()
    place = pick_device(device)
    check_shared(peers, networks, min(sizes), engine, place)
    moved = {id(own): own.to(place) for own in all_samples}
    asked = Asked(
        batch_size=min(sizes),
        optimizer=optimizer,
        schedule=schedule,
        augment=augment,
        engine=engine,
        validation=validation,
        stop=stop,
        peers=peers,
        sync_batch_norm=sync_batch_norm,
        checkpoint=checkpoint,
    )
    tau = default_tau(pieces) if tau is None else tau
    # only what is asked for: so the checkpoints of trainings without them still fit
    form: dict[str, Any] = {n: one for n, one in (("pieces", pieces), ("tau", tau)) if one}
    makers, presented = [], set()
    for e, network in enumerate(networks):
        own, plan = all_samples[e], all_plans[e]
        check_numbers(own, rounds, initial_rounds, batch_size, pulls[e], pull_limit)
        counts = own.class_counts
        plan = plan or default_plan(counts, own.classes, augment is not None, bool(pieces))
        plan = plan.fitted_to(counts, own.classes)
        check_pieces(pieces, tau, weighted, own, plan, used=loss is entropy or initial_rounds != 0)
        presented.add((len(own), int(plan.rows(counts).sum())))
        network.to(place)
        own = moved[id(own)]
        check_outputs(network, own, validation)
        check_loss(loss, own)
        check_augment(augment, own)
        if stop:
            stop.check(plan, validation)
        algorithm = partial(
            deep_over_sampling,
            network,
            own,
            plan,
            rounds=rounds,
            initial_rounds=rounds if initial_rounds is None else initial_rounds,
            pull=float(pulls[e]),
            pull_limit=pull_limit,
            weighted=weighted,
            loss=loss,
            approximate_above=approximate_above,
            augment=augment,
            **form,
        )
        report = partial(on_round, e) if on_round and peers.first else None
        begins = Beginning(asked, algorithm, network, own, plan, seeds[e], report)
        makers.append(partial(begins.member, recover=recover))
    at_once = how_many(many, place) if at_once is None else at_once
    if at_once > 1 and (reason := why_in_turn(networks[0], optimizer, even=len(presented) == 1)):
        logging.getLogger(__name__).warning("trained one after the other: %s", reason)
        at_once = 1
    try:
        with shared_batch_norm(networks[0], peers) if sync_batch_norm else nullcontext():
            members = train_together(
                makers,
                at_once=at_once,
                batch_size=asked.batch_size,
                optimizer=optimizer,
                schedule=schedule,
                augment=augment,
                engine=engine,
                checkpoints=checkpoint,
                peers=peers,
            )
    finally:
        if checkpoint is not None:
            checkpoint.close()
    return [member.error or member.history for member in members]
