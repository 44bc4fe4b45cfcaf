"""The story of a run, for the report: gathered from what was trained, nothing is trained for it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..embeddings import Embeddings
from ..moments import moments_of
from ..oversampling import oversample
from ..pieces import with_pieces
from ..report.story import Mistake, Moment, OverSampled, Story
from ..samples import Samples
from ..seeding import streams
from .preparing import PIECES, Task
from .record import Record
from .training import Outcome

__all__ = ["tell"]

_PER_CLASS, _CLASSES = 6, 12  # over-sampled examples; of so many classes, the rarest
_WORST = 24  # mistakes


def tell(task: Task, outcome: Outcome, record: Record) -> Story:
    """Everything the page shows, as plain arrays."""
    train, plan = task.train, task.plan
    counts = train.class_counts.cpu()
    return Story(
        title=task.splits.name,
        classes=train.classes,
        minority=tuple(plan.minority.nonzero().flatten().tolist()),
        counts=counts.numpy(),
        presented=plan.rows(counts).numpy(),
        k=plan.k.numpy(),
        labels=task.validation.y.cpu().numpy(),
        probabilities={name: p.float().numpy() for name, p in outcome.probabilities.items()},
        histories={name: history.to_dict() for name, history in outcome.histories.items()},
        moments=_moments(outcome.witness.moments(len(outcome.histories["dos"].rounds))),
        moment_labels=task.validation.y.cpu()[outcome.witness.rows].numpy(),
        over_sampled=tuple(_over_sampled(task, outcome)),
        mistakes={name: _mistakes(task, p) for name, p in outcome.probabilities.items()},
        facts=_facts(task, outcome, record),
    )


def _moments(seen: list[tuple[str, Tensor]]) -> tuple[Moment, ...]:
    """All by one projection: the two directions in which the last of them spreads most."""
    if not seen:
        return ()
    last = seen[-1][1].double()
    centre = last.mean(0)
    _, directions = torch.linalg.eigh((last - centre).T @ (last - centre))  # ascending
    pair = directions[:, -2:].flip(1)  # (d, 2), or (1, 1)
    signs = pair.gather(0, pair.abs().argmax(0, keepdim=True)).sign()  # else they are arbitrary
    pair = torch.nn.functional.pad(pair * signs, (0, 2 - pair.shape[1]))
    return tuple(Moment(title, ((v.double() - centre) @ pair).float().numpy()) for title, v in seen)


def _over_sampled(task: Task, outcome: Outcome) -> list[OverSampled]:
    """Rows of 𝒵′ as the last round was given them."""
    train, plan, y = task.train, task.plan, task.train.y.cpu()
    kept = (plan.k > 0)[y].nonzero().flatten()
    rounds = outcome.histories["dos"].rounds
    if not len(kept) or (plan.known and not rounds[-1].embedding_loss):  # it was too cautious
        return []
    done = len(rounds)
    t, v = outcome.witness.before_last(outcome.networks["dos"], done)
    # who is whose neighbour does not depend on the other classes
    kept_v = Embeddings(kept, v.cpu(), moments_of(v.cpu(), y[kept], train.n))
    rng = streams(task.settings.seed)
    bold = plan.cautious(0)  # what g knew then, nobody has kept
    z = oversample(train.to("cpu"), kept_v, bold, generator=rng("weights", t))
    if task.settings.pieces:
        pieced = with_pieces(z, PIECES, generator=rng("pieces", t))
    counts = train.class_counts.cpu()
    rare = [j for j in counts.argsort(stable=True).tolist() if plan.k[j] > 0][:_CLASSES]
    first = torch.searchsorted(z.hood, torch.arange(len(z.kept)))  # each sample's first weights
    found = []
    for j in rare:
        for hood in (y[z.kept] == j).nonzero().flatten()[:_PER_CLASS].tolist():
            there, row = z.neighborhoods.mask[hood], int(first[hood])
            i, *members = z.kept[z.neighborhoods.index[hood][there]].tolist()
            weights, image = z.w[row][there].tolist(), _image(train, i)
            if task.settings.pieces:  # as it is shown: with a piece of one of them, or of none
                batch = pieced[z.crowded[row : row + 1]]
                image, own = _picture(batch.x[0]), int(pieced.member[row]) - 1
                weights, members = (batch.w[0] * z.variance).tolist(), members[own : own + 1]
            neighbours = tuple(
                (_image(train, other), task.splits.file_of(train, other), float(weight))
                for other, weight in zip(members, weights[1:], strict=True)
            )
            name = task.splits.file_of(train, i)
            found.append(OverSampled(j, image, name, float(weights[0]), neighbours))
    return found


def _mistakes(task: Task, p: Tensor) -> tuple[Mistake, ...]:
    """The most certain ones about rare classes; about any where none is rare."""
    y, validation = task.validation.y.cpu(), task.validation
    minority = task.plan.minority
    certainty, taken = p.max(1)
    wrong = (taken != y) & (minority[y] | ~minority.any())
    rows = wrong.nonzero().flatten()
    rows = rows[certainty[rows].argsort(descending=True, stable=True)][:_WORST]
    return tuple(
        Mistake(
            label=int(y[row]),
            predicted=int(taken[row]),
            probability=float(certainty[row]),
            image=_image(validation, row),
            name=task.splits.file_of(validation, row),
        )
        for row in rows.tolist()
    )


def _image(samples: Samples, row: int) -> NDArray[np.uint8] | None:  # (h, w) or (h, w, 3)
    return _picture(samples.x[torch.tensor([row])][0].cpu())


def _picture(x: Tensor) -> NDArray[np.uint8] | None:  # (c, h, w)
    if x.ndim != 3 or len(x) not in (1, 3):
        return None
    if x.dtype != torch.uint8:  # of any range: dark to bright
        low, high = x.min(), x.max()
        x = ((x - low) / (high - low).clamp(min=1e-12) * 255).to(torch.uint8)
    array: NDArray[np.uint8] = x.permute(1, 2, 0).numpy()
    return array[:, :, 0].copy() if len(x) == 1 else array.copy()


def _facts(task: Task, outcome: Outcome, record: Record) -> dict[str, str]:
    settings, T = task.settings, task.rounds
    shape = " × ".join(map(str, task.train.x.shape[1:]))
    facts = {
        "data": f"{task.splits.name}, samples of {shape}",
        "samples": f"{len(task.train):,} to train on, {len(task.validation):,} to validate on",
        "fingerprints": ", ".join(f"{part} {of}" for part, of in record.fingerprints.items()),
        "status": outcome.status,
        "model": settings.model + (", pretrained" if settings.pretrained else ""),
        "weights": settings.weights or "",
        "rounds": f"{T} plain, then {T} of DOS"
        + (f"; the baseline {2 * T} plain ones, {T} of them shared" if settings.baseline else "")
        + (f"; stopped after {settings.patience} no better" if settings.patience else ""),
        "optimiser": f"SGD, {settings.trained_by}, momentum 0.9",
        "batch size": str(settings.batch_size),
        "augmentation": repr(task.augment) if task.augment else "none",
        "pieces": "of a neighbour, in every other picture" if settings.pieces else "",
        "margin": f"τ = {settings.margin:g}" if settings.margin else "",
        "k": f"{int(task.plan.k.max())}"
        + (" (chosen)" if task.candidates else "")
        + (", once classes are known" if task.plan.known else ""),
        "temperature": f"{outcome.temperature:.3g}",
        "seed": str(settings.seed),
        "device": str(task.device),
        "time": f"{outcome.seconds:.0f} s",
        "versions": ", ".join(
            f"{name} {version}" for name, version in record.versions.items() if name != "device"
        ),
    }
    return {name: text for name, text in facts.items() if text}
