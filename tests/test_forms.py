"""Forms of DOS for a modern network: parts that are left out or changed, and a memory."""

import copy
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch.optim import SGD

from contests import pictures, small_lenet
from deep_oversampling import Engine, Plan, Samples, embed, resnet32, training
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.embeddings import embed_classes
from deep_oversampling.losses import entropy
from deep_oversampling.objectives import multi_task
from deep_oversampling.overloading import in_class_neighbors
from deep_oversampling.oversampling import MicroClusters, oversample
from deep_oversampling.rivals import logit_adjusted
from deep_oversampling.seeding import streams
from deep_oversampling.stages import Member, train_members, train_stages
from forms import FORMS, paper, pasted, recalled, shifted
from partners import PARTNERS, Task
from pasting import Pasted, PastedClusters
from remembering import RecallTable, Remembering, recalling
from test_replaying import Again
from toy import blobs, generator, small, weights
from varying import varied

close = torch.testing.assert_close
SAMPLES = blobs((20, 12, 6))
ASKED = {"loss": entropy, "pull": 1.0, "limit": 0.3, "in_g": 1.0}

# parts left out


def micro_clusters(network) -> MicroClusters:
    plan = Plan([0, 4, 4], [1, 2, 3])
    v = embed_classes(network, SAMPLES, plan.k > 0)
    z = oversample(SAMPLES, v, plan, generator=generator())
    order = z.has_neighbours.long().argsort(descending=True, stable=True)
    return replace(z, heads=int(z.has_neighbours.sum()))[order]


def test_with_nothing_changed_it_is_a_step_of_the_paper() -> None:
    network = small()
    z = micro_clusters(network)
    for one, other in zip(
        varied(network, z, **ASKED), multi_task(1.0, 0.3)(network, z), strict=True
    ):
        close(one, other)


def test_neighbours_can_be_left_out_of_g() -> None:
    network = small()
    z = micro_clusters(network)
    ell_g, ell_f = varied(network, z, **{**ASKED, "in_g": 0.0})
    close(ell_g, entropy(network(z.x), z.y))
    close(ell_f, varied(network, z, **ASKED)[1])


def test_a_row_with_neighbours_can_weigh_as_much_as_one_without() -> None:
    """Where all that g sees of a row has the same loss, the weighted row has that loss."""
    network, z = small(), micro_clusters(small())
    z = replace(z, v=network.embed(z.x)[: len(z.v)].detach().unsqueeze(1).expand_as(z.v))
    ell_g, _, weight = varied(network, z, **ASKED, evened=True)
    close(weight * ell_g, entropy(network(z.x), z.y))
    assert weight[: len(z.v)].max() < weight[len(z.v) :].min() == 1


# the memory


def table(memory: torch.Tensor) -> RecallTable:
    pulled = torch.tensor([False, True, True])
    return RecallTable.drawn(SAMPLES, memory, streams(0), k=3, pulled=pulled)


def test_a_step_from_the_memory_is_that_of_the_paper() -> None:
    network = Remembering(small(), SAMPLES)
    z = table(network.memory)[torch.arange(len(SAMPLES))]
    batch = MicroClusters(z.x, z.y, network.memory[z.near], z.w, z.mask)
    expected = multi_task(1.0, 0.3)(network, batch)
    for one, other in zip(recalling(network, z, **ASKED), expected, strict=True):
        close(one, other)


def test_only_classes_that_are_pulled_have_neighbours() -> None:
    network = Remembering(small(), SAMPLES)
    z = table(network.memory)[torch.arange(len(SAMPLES))]
    assert set(z.y.tolist()) == {0, 1, 2}
    assert (z.mask.any(1) == (z.y > 0)).all()
    _, ell_f = recalling(network, z, **ASKED)
    assert ((ell_f > 0) == (z.y > 0)).all()


def test_what_is_presented_is_remembered() -> None:
    network = Remembering(small(), SAMPLES)
    before = network.memory.clone()
    z = table(network.memory)[torch.tensor([3, 5, 8])]
    z = replace(z, x=z.x + 1)
    recalling(network, z, **ASKED)
    close(network.memory[z.i], network.embed(z.x).detach())
    others = torch.ones(len(SAMPLES), dtype=torch.bool)
    others[z.i] = False
    assert torch.equal(network.memory[others], before[others])


# images with a piece of another


def numbered(counts: tuple[int, ...] = (6, 4, 1)) -> Samples:
    """Every image is of one grey, its number."""
    y = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    x = torch.arange(len(y)).view(-1, 1, 1, 1).expand(-1, 2, 8, 6)
    return Samples(x.to(torch.uint8).contiguous(), y)


def pasted_images(often: float = 1.0, **options: object) -> Pasted:
    images = numbered()
    rows = torch.arange(len(images)).repeat(20)
    return Pasted.drawn(images, rows, generator(), often=often, **options)


def test_a_piece_is_of_another_image_of_the_class() -> None:
    table = pasted_images()
    batch = table[torch.arange(len(table))]
    assert torch.equal(batch.y, table.samples.y[table.row])
    seen = 0
    for x, i, j, (top, bottom, left, right) in zip(
        batch.x, table.row, table.other, table.piece.tolist(), strict=True
    ):
        assert table.samples.y[i] == table.samples.y[j]
        assert (i == j) == (i == len(table.samples) - 1)  # a class of one has no other
        expected = table.samples.x[i].clone()
        expected[:, top:bottom, left:right] = j
        assert torch.equal(x, expected)
        seen += (x != i).any() and (x == i).any()
    assert seen > len(table) / 2


def test_some_images_stay_as_they_are() -> None:
    rows = torch.arange(len(numbered()) * 20)
    assert torch.equal(pasted_images(0.0)[rows].x, numbered().x.repeat(20, 1, 1, 1))
    changed = [
        (table[rows].x != table.samples.x[table.row]).flatten(1).any(1).float().mean()
        for table in (pasted_images(0.5), pasted_images())
    ]
    assert 0.3 < changed[0] < 0.7 < changed[1]


def test_pieces_may_be_those_of_neighbours() -> None:
    images = numbered()
    v = torch.arange(len(images)).float().square().unsqueeze(1)
    hoods = in_class_neighbors(v, images.y, torch.tensor([2, 2, 0]))
    table = pasted_images(near=hoods)
    allowed = [set(own[mask].tolist()) for own, mask in zip(hoods.index, hoods.mask, strict=True)]
    for i, j in zip(table.row.tolist(), table.other.tolist(), strict=True):
        assert j in allowed[i] - {i} or len(allowed[i]) == 1


def test_targets_are_made_of_the_same_parts_as_images() -> None:
    """Where an embedding is the mean grey of an image, it lies at the target already."""
    table = pasted_images()
    v = table.samples.x.float().mean((1, 2, 3)).unsqueeze(1)
    z = PastedClusters(table, v, torch.tensor(2.0))[torch.arange(len(table))]
    close(2 * z.w.sum(1), torch.ones(len(z)))
    close((2 * z.w.unsqueeze(-1) * z.v).sum(1), z.x.float().mean((1, 2, 3)).unsqueeze(1))


# forms


def task(samples: Samples, rounds: int = 3) -> Task:
    return Task(samples, rounds, rounds - 1, streams(1), CropAndFlip(1))


def remembered(**options: float) -> Remembering:
    """Trained for three rounds on images, with augmentation."""
    images = pictures((12, 8, 4))
    network = Remembering(small_lenet(), images)
    stages = recalled(network, task(images), PARTNERS["ce"], **{"k": 2, **options})
    train_stages(network, stages, batch_size=8, rng=streams(0), augment=CropAndFlip(1))
    return network


def test_steps_with_a_memory_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory is no part of what is copied into a recording: it is written where it is."""
    eager = remembered()
    recorder, plain = Again(), training.Replay
    monkeypatch.setattr(training, "Replay", lambda step, _: plain(step, recorder))
    replayed = remembered()
    assert recorder.replayed > 0
    assert torch.equal(weights(eager), weights(replayed))
    assert torch.equal(eager.memory, replayed.memory)
    assert not torch.equal(eager.memory, Remembering(small_lenet(), pictures((12, 8, 4))).memory)


def test_a_memory_is_filled_before_it_is_used() -> None:
    images = pictures((12, 8, 4))
    network = Remembering(small_lenet(), images)
    member = Member(network, recalled(network, task(images), PARTNERS["la"], k=2), streams(0))
    train_members([member], batch_size=8)
    assert [r.embedding_loss > 0 for r in member.history.rounds] == [False, True, True]


def test_targets_may_be_those_of_changed_copies() -> None:
    images, network = pictures((12, 8, 4)), small_lenet()
    stored = embed(network, images.x)
    plain, seen = (
        next(paper(network, task(images), PARTNERS["ce"], k=2, seen=seen)).table
        for seen in (False, True)
    )
    close(plain.v, stored[plain.kept])
    assert not torch.equal(seen.v, plain.v)
    assert torch.equal(seen.samples.x, images.x)  # what is presented is augmented by the trainer


def test_classes_may_stay_as_they_are_and_all_have_neighbours() -> None:
    images, network = pictures((12, 8, 4)), small_lenet()
    options = {"k": 2, "levelled": False, "everyone": True}
    table = next(paper(network, task(images), PARTNERS["ce"], **options)).table
    assert len(table) == len(images)
    assert bool(table.has_neighbours.all())


@pytest.mark.parametrize("name", PARTNERS)
def test_with_nothing_added_a_form_goes_on_as_its_partner(name: str) -> None:
    images, partner = pictures((12, 8, 4)), PARTNERS[name]
    network = partner.prepare(small_lenet())
    options = {"k": 2, "levelled": False, "pull": 0.0, "in_g": 0.0}
    form = paper(network, task(images), partner, **options)
    for own, expected in zip(form, partner.stages(task(images)), strict=True):
        mean, other = (
            batch_mean(*stage.objective(network, stage.table[torch.arange(len(images))]))
            for stage in (own, expected)
        )
        close(mean, other)


def batch_mean(ell_g: torch.Tensor, ell_f: torch.Tensor, weight: torch.Tensor | None = None):
    assert not ell_f.any()
    weight = torch.ones_like(ell_g) if weight is None else weight
    return (weight * ell_g).sum() / weight.sum()


def test_targets_may_be_those_of_a_mean_of_f_over_rounds() -> None:
    images, network = pictures((12, 8, 4)), small_lenet()
    stages = paper(network, task(images), PARTNERS["ce"], k=2, seen=False, average=0.75)
    next(stages)
    expected = copy.deepcopy(network)
    with torch.no_grad():
        for mean, p in zip(expected.parameters(), network.parameters(), strict=True):
            p.add_(1)
            mean.lerp_(p, 0.25)
    table = next(stages).table
    close(table.v, embed(expected, images.x)[table.kept])


@pytest.mark.parametrize("options", [{}, {"k": 2}, {"pull": 1.0}, {"levelled": False}])
def test_images_with_pieces_are_trained_on(options: dict[str, object]) -> None:
    images, network = pictures((12, 8, 4)), small_lenet()
    member = Member(network, pasted(network, task(images), PARTNERS["ce"], **options), streams(0))
    before = weights(network)
    train_members([member], batch_size=8)
    assert not torch.equal(weights(network), before)
    assert [r.embedding_loss > 0 for r in member.history.rounds] == ["pull" in options] * 3
    table = next(pasted(network, task(images), PARTNERS["ce"], **options)).table
    rows = (table.table if isinstance(table, PastedClusters) else table).row
    assert (images.y[rows].bincount().tolist() == [12, 8, 4]) == ("levelled" in options)


@pytest.mark.parametrize("form", [paper, pasted])
def test_classes_may_be_levelled_in_part(form) -> None:
    """With q = 1/2, a class that is sixteen times as rare is presented a fourth as often."""
    images, network = pictures((320, 20)), small_lenet()
    table = next(form(network, task(images), PARTNERS["ce"], k=0, q=0.5)).table
    row = table.anchor if form is paper else table.row
    large, rare = images.y[row].bincount().tolist()
    assert large / rare == pytest.approx(4, rel=0.25)


def test_what_shifts_logits_is_logit_adjustment() -> None:
    counts, logits = torch.tensor([60, 30, 6]), torch.randn(12, 3, generator=generator())
    labels = torch.arange(12) % 3
    for tau in (0.5, 1.0):
        found = shifted(entropy, counts, tau)(logits, labels)
        close(found, logit_adjusted(counts, tau)(logits, labels))
    assert not torch.equal(found, entropy(logits, labels))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize(
    "name", ["ce+live-half", "la+dos-late", "ldam+live-late", "ce+over-half", "la+pasted-late"]
)
def test_forms_are_recorded_on_a_gpu(name: str, caplog: pytest.LogCaptureFixture) -> None:
    # neighbours for all: else a recording leaves room for more of them, and rounds otherwise
    counts = (40, 40, 40) if "dos" in name else (60, 40, 20)
    images, form, found = pictures(counts).to("cuda"), FORMS[name], []
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
