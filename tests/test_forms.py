"""Forms of DOS for a modern network: what each presents, and by which loss."""

from functools import partial

import pytest
import torch
from torch.optim import SGD

from contests import pictures, small_lenet
from deep_oversampling import Engine, Plan, resnet32
from deep_oversampling.augmentation import CropAndFlip
from deep_oversampling.losses import entropy
from deep_oversampling.pieces import Pieced
from deep_oversampling.rivals import effective_number, ldam, logit_adjusted
from deep_oversampling.rivals.mixup import mixup
from deep_oversampling.seeding import streams
from deep_oversampling.stages import Stage, train_stages
from forms import FORMS
from partners import PARTNERS, Task

close = torch.testing.assert_close
IMAGES = pictures((16, 6, 4))
COUNTS = IMAGES.class_counts


def task(rounds: int = 3, images=IMAGES) -> Task:
    return Task(images, rounds, rounds - 1, streams(1), CropAndFlip(1))


def first(name: str, **options: object) -> Stage:
    form = FORMS[name].changed(k=2, **options) if "over" not in name else FORMS[name]
    return next(form.stages(small_lenet(), task(), PARTNERS[form.partner]))


def presented(stage: Stage) -> list[int]:
    table = stage.table
    return table[torch.arange(len(table))].y.bincount().tolist()


def own_loss(stage: Stage, loss) -> None:
    """ℓ_g is this loss of the pictures that are presented, where neighbours are no part of it."""
    network, batch = small_lenet(), stage.table[torch.arange(len(stage.table))]
    found = stage.objective(network, batch)[0]
    alone = ~batch.mask.any(1) if len(batch.mask) else torch.ones_like(batch.y, dtype=torch.bool)
    assert bool(alone.any())
    close(found[alone], loss(network(batch.x), batch.y)[alone])


def test_over_sampling_levels_classes_without_neighbours() -> None:
    stage = first("ce+over-half")
    assert presented(stage) == (Plan.automatic(COUNTS).r * COUNTS).tolist()
    assert not stage.table.has_neighbours.any()
    own_loss(stage, entropy)


def test_dos_has_neighbours_for_rare_classes() -> None:
    stage = first("la+dos-half")
    assert presented(stage) == (Plan.automatic(COUNTS).r * COUNTS).tolist()
    assert torch.equal(stage.table.has_neighbours, IMAGES.y[stage.table.anchor] > 0)
    own_loss(stage, entropy)  # after logit adjustment, levelled classes need none
    own_loss(first("ldam+dos-half"), ldam(COUNTS))


def test_pieces_come_with_classes_levelled_in_part_and_a_margin() -> None:
    for partner in PARTNERS:
        stage = first(f"{partner}+pieces-half")
        assert isinstance(stage.table, Pieced)
        assert presented(stage) == Plan.in_part(COUNTS).rows(COUNTS).tolist() == [16, 10, 8]
        own_loss(stage, logit_adjusted(COUNTS))  # of cross-entropy, after LDAM as well
    own_loss(first("ce+pieces-half", tau=0.5), logit_adjusted(COUNTS, 0.5))
    assert presented(first("ce+pieces-half", q=0.0)) == [16, 16, 16]


def test_partners_weigh_from_the_start_late_or_never() -> None:
    for name, weighing in {"ce": [], "ldam": [2], "cb": [0, 1, 2]}.items():
        network = PARTNERS[name].prepare(small_lenet())
        stages = list(PARTNERS[name].stages(task()))
        batch = IMAGES[torch.arange(len(IMAGES))]
        answers = [stage.objective(network, batch) for stage in stages]
        assert [t for t, one in enumerate(answers) if len(one) == 3] == weighing
        for t in weighing:
            close(answers[t][2], effective_number(COUNTS)[batch.y])


def test_partners_mix_images_anew_in_every_round() -> None:
    for name, loss in {"mixup": entropy, "mixup-la": logit_adjusted(COUNTS)}.items():
        stages = list(PARTNERS[name].stages(task()))
        rows = torch.arange(len(IMAGES))
        first, second, _ = (stage.table[rows] for stage in stages)
        assert not torch.equal(first.share, second.share)
        network = small_lenet()
        expected = mixup(loss)(network, first)[0]
        close(stages[0].objective(network, first)[0], expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("name", ["la+dos-late", "ce+over-half", "ldam+pieces-half"])
def test_forms_are_recorded_on_a_gpu(name: str, caplog: pytest.LogCaptureFixture) -> None:
    # neighbours for all: else a recording leaves room for more of them, and rounds otherwise
    counts = (40, 40, 40) if "dos" in name else (60, 40, 20)
    images, form, found = pictures(counts).to("cuda"), FORMS[name], []
    for engine in (Engine(replay=False), Engine()):
        partner = PARTNERS[form.partner]
        network = partner.prepare(resnet32(1, 3)).to("cuda")
        stages = form.stages(network, task(4, images), partner)
        options = {"batch_size": 16, "optimizer": partial(SGD, lr=1e-3), "engine": engine}
        train_stages(network, stages, rng=streams(0), augment=CropAndFlip(1), **options)
        found.append(torch.cat([t.flatten().float() for t in network.state_dict().values()]))
    assert torch.equal(*found)
    assert caplog.records == []  # nothing refused
