"""Forms of DOS for a modern network: synthetic points, a memory, a second stage."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.optim import SGD

from contests import pictures, small_lenet
from deep_oversampling import Engine, Samples, embed, resnet32, training
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.losses import entropy
from deep_oversampling.objectives import multi_task, single_task
from deep_oversampling.oversampling import MicroClusters
from deep_oversampling.seeding import streams
from deep_oversampling.stages import Member, Stage, train_members, train_stages
from forms import FORMS, recalled
from partners import PARTNERS, Task
from remembering import (
    RecallTable,
    Remembering,
    balanced_points,
    neighbours,
    recalling,
)
from test_replaying import Again
from toy import blobs, small, weights

close = torch.testing.assert_close
SAMPLES = blobs((20, 12, 6))
ASKED = {
    "loss": entropy,
    "weights": None,
    "pull": 1.0,
    "limit": 0.3,
    "single": 1.0,
    "synthetic": 0.0,
    "live": False,
    "momentum": 0.0,
}


def table(memory: Tensor, samples: Samples = SAMPLES, **changes: object) -> RecallTable:
    options = {"k": 3, "pulled": torch.ones(3, dtype=torch.bool), "balanced": False, "borrow": 0.0}
    return RecallTable.drawn(samples, memory, streams(0), **{**options, **changes})


def everything(one: RecallTable):
    return one[torch.arange(len(one))]


# synthetic points


def test_points_lie_in_hulls_of_their_own_class() -> None:
    v, y = SAMPLES.x, SAMPLES.y
    points = balanced_points(v, y, neighbours(v, y, 3, 4), 600, streams(0))
    close(points.shares.sum(1), torch.ones(600))
    assert (points.shares >= 0).all()
    assert (y[points.corners] == points.label.unsqueeze(1)).all()
    close(points.among(v), (points.shares.unsqueeze(2) * v[points.corners]).sum(1))
    assert all(150 < int(count) < 250 for count in torch.bincount(points.label))


def test_without_neighbours_points_are_samples() -> None:
    v, y = SAMPLES.x, SAMPLES.y
    points = balanced_points(v, y, neighbours(v, y, 3, 0), 50, streams(0))
    close(points.among(v), v[points.corners[:, 0]])


def test_variance_is_borrowed_from_a_larger_class_by_what_is_lacking() -> None:
    v, y = SAMPLES.x, SAMPLES.y
    hoods = neighbours(v, y, 3, 0)
    points = balanced_points(v, y, hoods, 4000, streams(0), borrow=1.0)
    counts = torch.bincount(y)
    lender = y[points.lent]
    assert (lender[:, 0] == lender[:, 1]).all()
    largest = points.label == 0
    assert (counts[lender[~largest, 0]] > counts[points.label[~largest]]).all()
    assert not points.strength[largest].any()
    close(points.strength, 1 - counts[points.label] / counts[lender[:, 0]])
    plain = balanced_points(v, y, hoods, 4000, streams(0))
    moved = points.among(v) - plain.among(v)
    assert not moved[largest].any()
    of_rare = moved[points.label == 2]  # from class 0 or 1: strength² times their variance
    expected = points.strength[points.label == 2][0] ** 2
    own = v[y == lender[points.label == 2][0, 0]].var(0, correction=0).sum()
    assert float(of_rare.var(0).sum() / (expected * own)) == pytest.approx(1.0, abs=0.1)


# the memory


def test_a_step_from_the_memory_is_that_of_the_paper() -> None:
    network = Remembering(small(), SAMPLES)
    z = everything(table(network.memory))
    ours = recalling(network, z, **ASKED)
    batch = MicroClusters(z.x, z.y, network.memory[z.near], z.w, z.mask)
    for one, other in zip(ours, multi_task(1.0, 0.3)(network, batch), strict=True):
        close(one, other)


def test_only_classes_that_are_pulled_have_neighbours() -> None:
    network = Remembering(small(), SAMPLES)
    z = everything(table(network.memory, pulled=torch.tensor([False, False, True])))
    assert (z.mask.any(1) == (z.y == 2)).all()
    _, ell_f = recalling(network, z, **ASKED)
    assert ((ell_f > 0) == (z.y == 2)).all()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_what_is_presented_is_remembered(momentum: float) -> None:
    network = Remembering(small(), SAMPLES)
    before = network.memory.clone()
    rows = torch.tensor([3, 5, 8])
    z = replace(table(network.memory)[rows], x=SAMPLES.x[rows] + 1)
    recalling(network, z, **{**ASKED, "live": True, "momentum": momentum})
    fx = network.embed(SAMPLES.x[rows] + 1).detach()
    close(network.memory[rows], momentum * before[rows] + (1 - momentum) * fx)
    others = torch.ones(len(SAMPLES), dtype=torch.bool)
    others[rows] = False
    assert torch.equal(network.memory[others], before[others])


def test_points_teach_g_alone_and_a_share_is_what_f_is_given() -> None:
    network = Remembering(small(), SAMPLES)
    z = everything(table(network.memory))
    plain = {**ASKED, "pull": 0.0, "single": 0.0}

    def gradients(**changes: float) -> tuple[Tensor, Tensor]:
        network.zero_grad()
        sum(ell.sum() for ell in recalling(network, z, **{**plain, **changes})).backward()
        of_f = torch.cat([p.grad.flatten() for p in network.embedder.parameters()])
        return of_f, torch.cat([p.grad.flatten() for p in network.classifier.parameters()])

    (f, g), (f_too, g_too) = gradients(), gradients(synthetic=1.0)
    close(f, f_too)
    assert not torch.allclose(g, g_too)
    tenth, same = gradients(to_f=0.1)
    close(tenth, 0.1 * f)
    close(same, g)


def test_weights_are_relative_to_those_of_the_batch() -> None:
    network = Remembering(small(), SAMPLES)
    z = everything(table(network.memory))
    plain = {**ASKED, "pull": 0.0, "single": 0.0}
    own, _ = recalling(network, z, **plain)
    given = torch.tensor([1.0, 2.0, 5.0])
    found, _ = recalling(network, z, **{**plain, "weights": given})
    close(found.mean(), (own * given[z.y]).sum() / given[z.y].sum())


def task(samples: Samples, rounds: int = 3) -> Task:
    return Task(samples, rounds, streams(1), CropAndFlip(1))


def remembered(**options: float) -> Remembering:
    """Trained for three rounds on images, with augmentation."""
    images = pictures((12, 8, 4))
    network = Remembering(small_lenet(), images)
    stages = recalled(network, task(images), PARTNERS["ce"], **{"k": 2, **options})
    train_stages(network, stages, batch_size=8, rng=streams(0), augment=CropAndFlip(1))
    return network


FULL = {"pull": 1.0, "single": 1.0, "synthetic": 1.0, "borrow": 0.5, "momentum": 0.5}


def test_steps_with_a_memory_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is no part of what is copied into a recording: it is written where it is."""
    eager = remembered(**FULL)
    recorder, plain = Again(), training.Replay
    monkeypatch.setattr(training, "Replay", lambda step, _: plain(step, recorder))
    replayed = remembered(**FULL)
    assert recorder.replayed > 0
    assert torch.equal(weights(eager), weights(replayed))
    assert torch.equal(eager.memory, replayed.memory)
    assert not torch.equal(eager.memory, Remembering(small_lenet(), pictures((12, 8, 4))).memory)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("name", ["ce+live-both", "la+live-momentum", "ldam+live", "ce+hull"])
def test_forms_are_recorded_on_a_gpu(name: str, caplog: pytest.LogCaptureFixture) -> None:
    images, form, found = pictures((60, 40, 20)).to("cuda"), FORMS[name], []
    for engine in (Engine(replay=False), Engine()):
        partner = PARTNERS[form.partner]
        network = partner.prepare(resnet32(1, 3)).to("cuda")
        network = form.prepare(network, images).to("cuda")
        stages = form.stages(network, task(images, 4), partner)
        options = {"batch_size": 16, "optimizer": partial(SGD, lr=1e-3), "engine": engine}
        train_stages(network, stages, rng=streams(0), augment=CropAndFlip(1), **options)
        found.append(torch.cat([t.flatten().float() for t in network.state_dict().values()]))
    assert torch.equal(*found)
    assert caplog.records == []  # nothing refused


def test_a_memory_that_does_nothing_is_the_partner() -> None:
    images, network = pictures((12, 8, 4)), small_lenet()
    stages = (Stage("single", images, single_task) for _ in range(3))
    train_stages(network, stages, batch_size=8, rng=streams(0), augment=CropAndFlip(1))
    idle = remembered()
    close(weights(idle), weights(network))


def test_a_cloud_of_one_corner_is_the_image_itself() -> None:
    close(weights(remembered(k=0, cloud=True)), weights(remembered()))
    assert not torch.equal(weights(remembered(k=2, cloud=True)), weights(remembered()))
    assert not torch.equal(weights(remembered(k=0, cloud=True, borrow=1.0)), weights(remembered()))


def test_memory_of_use_is_that_of_embed() -> None:
    """Not live: before every round all samples are embedded as they are."""
    images = pictures((12, 8, 4))
    network = Remembering(small_lenet(), images)
    stages = recalled(network, task(images), PARTNERS["ce"], k=2, pull=1.0, live=False)
    member = Member(network, stages, streams(0))
    train_members([member], batch_size=8)
    assert not torch.equal(network.memory, embed(network, images.x))  # of before the last round
    assert [r.embedding_loss > 0 for r in member.history.rounds] == [True] * 3


def test_a_live_memory_is_filled_before_it_is_used() -> None:
    images = pictures((12, 8, 4))
    network = Remembering(small_lenet(), images)
    stages = recalled(network, task(images), PARTNERS["la"], k=2, pull=1.0)
    member = Member(network, stages, streams(0))
    train_members([member], batch_size=8)
    assert [r.embedding_loss > 0 for r in member.history.rounds] == [False, True, True]


# the second stage


@pytest.mark.parametrize("name", [n for n in FORMS if n.startswith(("ce+hull", "ce+crt"))])
def test_a_second_stage_leaves_f_and_its_batch_norm_alone(name: str) -> None:
    images, form = pictures((12, 8, 4)), FORMS[name]
    network = form.prepare(resnet32(images.x.shape[1], 3), images)
    before = {key: t.clone() for key, t in network.state_dict().items()}
    stages = form.stages(network, task(images, 1), PARTNERS["ce"])
    train_stages(
        network,
        stages,
        batch_size=8,
        rng=streams(0),
        optimizer=partial(SGD, lr=0.1, weight_decay=1),
    )
    for key, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[key]) == (not key.startswith("classifier")), key
