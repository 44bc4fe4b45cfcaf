"""Changed copies: what is drawn decides, every device and batch size agrees, runs repeat."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from deep_oversampling import InputError, Plan, Samples, embed, lenet
from deep_oversampling.algorithm import deep_over_sampling
from deep_oversampling.augmentation import (
    Augmentation,
    CropAndFlip,
    InTurn,
    MirrorAndTurn,
    Turn,
)
from deep_oversampling.data.copies import mirrored_and_rotated
from deep_oversampling.seeding import streams
from deep_oversampling.views import View
from toy import generator, train, weights

ALL = [
    CropAndFlip(),
    CropAndFlip(padding=1),
    Turn(),
    Turn(degrees=90),
    MirrorAndTurn(),
    InTurn((CropAndFlip(), Turn())),
]
every = pytest.mark.parametrize("augment", ALL, ids=repr)


def images(*shape: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    x = torch.randint(256, shape, generator=generator(0))
    return x.to(dtype)


def numbers(b: int, augment: Augmentation) -> Tensor:
    return torch.rand(b, augment.draws, generator=generator(1))


@every
@pytest.mark.parametrize("shape", [(5, 1, 8, 8), (3, 3, 9, 6)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_copies_are_like_the_images(
    augment: Augmentation, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    x = images(*shape, dtype=dtype)
    out = augment(x, numbers(len(x), augment))
    assert out.shape == x.shape
    assert out.dtype == x.dtype
    assert not torch.equal(out, x)
    assert float(out.max()) <= float(x.max())
    assert float(out.min()) >= 0


@every
def test_each_image_depends_on_its_own_numbers_only(augment: Augmentation) -> None:
    x = images(6, 3, 8, 8)
    u = numbers(6, augment)
    together = augment(x, u)
    for i in range(6):
        assert torch.equal(together[i : i + 1], augment(x[i : i + 1], u[i : i + 1]))


def test_crop_and_flip_cuts_out_of_the_padded_image() -> None:
    x = images(1, 2, 4, 5)
    around = torch.nn.functional.pad(x, [2] * 4)
    u = torch.tensor([[0.99, 0.0, 0.2]])  # four down, none to the right, not mirrored
    assert torch.equal(CropAndFlip(2)(x, u), around[:, :, 4:8, 0:5])
    u = torch.tensor([[0.5, 0.5, 0.8]])  # the middle, mirrored
    assert torch.equal(CropAndFlip(2)(x, u), x.flip(-1))


@pytest.mark.parametrize(
    ("u", "expected"),
    [
        (0.0, lambda x: x),
        (0.25, lambda x: x.rot90(1, (2, 3))),
        (0.5, lambda x: x.rot90(2, (2, 3))),
        (0.75, lambda x: x.rot90(3, (2, 3))),
    ],
)
def test_quarter_turns_are_exact(u: float, expected: Callable[[Tensor], Tensor]) -> None:
    x = images(2, 3, 8, 8)
    assert torch.equal(MirrorAndTurn()(x, torch.tensor([[0.0, u]] * 2)), expected(x))
    mirrored = MirrorAndTurn()(x, torch.tensor([[0.5, u]] * 2))
    assert torch.equal(mirrored, expected(x.flip(-1)))


def test_oblong_images_keep_their_proportions() -> None:
    x = torch.zeros(1, 1, 9, 21)
    x[0, 0, 4, 8:13] = 1.0  # a bar of five pixels across the centre
    turned = MirrorAndTurn()(x, torch.tensor([[0.0, 0.25]]))
    expected = torch.zeros_like(x)
    expected[0, 0, 2:7, 10] = 1.0
    inner = slice(6, 15)  # beside it lies what came in, mirrored, from beyond the edge
    torch.testing.assert_close(turned[..., inner], expected[..., inner], atol=1e-4, rtol=0)


def test_in_turn_shares_out_the_numbers() -> None:
    x = images(4, 1, 8, 8)
    both = InTurn((CropAndFlip(1), Turn(20)))
    u = numbers(4, both)
    assert both.draws == 4
    assert torch.equal(both(x, u), Turn(20)(CropAndFlip(1)(x, u[:, :3]), u[:, 3:]))


@every
def test_vectors_are_refused(augment: Augmentation) -> None:
    with pytest.raises(InputError, match=r"must be given images \(b, c, h, w\), found shape"):
        augment(torch.rand(2, 3), torch.rand(2, augment.draws))


def trained(samples: Samples, augment: Augmentation | None) -> Tensor:
    network, plan = lenet((1, 8, 8), samples.n, seed=3), Plan.automatic(samples.class_counts)
    train(network, samples, plan, batch_size=7, augment=augment, seed=5)
    return weights(network)


@pytest.fixture
def small() -> Samples:
    return Samples(images(20, 1, 8, 8), [0] * 14 + [1] * 6)


def test_fit_repeats_with_augmentation_and_it_matters(small: Samples) -> None:
    first, second = trained(small, CropAndFlip(1)), trained(small, CropAndFlip(1))
    assert torch.equal(first, second)
    assert not torch.equal(first, trained(small, None))


def test_augmentation_shifts_no_other_draw(small: Samples) -> None:
    class Nothing:
        draws = 3

        def __call__(self, x: Tensor, u: Tensor) -> Tensor:
            return x

    assert torch.equal(trained(small, Nothing()), trained(small, None))


def test_every_presentation_is_a_copy_of_its_own() -> None:
    """A sample that is presented r times in a round is changed in r ways."""
    seen = []

    class Watch:
        draws = 1

        def __call__(self, x: Tensor, u: Tensor) -> Tensor:
            seen.append(u.clone())
            return x

    network = lenet((1, 8, 8), 2, seed=0)
    samples = Samples(images(24, 1, 8, 8), [0] * 18 + [1] * 6)
    train(network, samples, initial_rounds=0, augment=Watch(), batch_size=12)
    # a look at one sample, v of all, what is presented, and the spread of all at the end
    first, of_v, *presented, last = seen
    u = torch.cat(presented)
    assert [len(part) for part in (first, of_v, u, last)] == [1, 24, 18 + 3 * 6, 24]
    assert len(torch.cat([of_v, u, last]).unique()) == 24 + len(u) + 24


def test_by_default_neighbours_are_left_out_where_training_is_augmented(small: Samples) -> None:
    found, plan = [], Plan.automatic(small.class_counts)
    for chosen in (None, plan.without_neighbours(), plan):
        network = lenet((1, 8, 8), 2, seed=3)
        train(network, small, chosen, batch_size=7, augment=CropAndFlip(1))
        found.append(weights(network))
    default, without, neighbours = found
    assert torch.equal(default, without)
    assert not torch.equal(default, neighbours)


def test_targets_are_those_of_what_training_sees(small: Samples) -> None:
    """Embeddings of images that no presentation is like would pull f away from all of them."""

    class Inverted:
        draws = 1

        def __call__(self, x: Tensor, u: Tensor) -> Tensor:
            return 255 - x

    network, plan, rng = lenet((1, 8, 8), 2, seed=0), Plan.uniform(2, k=2), streams(0)
    stages = deep_over_sampling(
        network, small, plan, rounds=1, initial_rounds=0, rng=rng, augment=Inverted()
    )
    z = next(stages).table
    torch.testing.assert_close(z.v, embed(network, 255 - small.x))
    assert torch.equal(z.samples.x, small.x)  # whoever presents them changes them


@pytest.mark.parametrize(
    ("augment", "message"),
    [
        (CropAndFlip, "must be an object such as CropAndFlip"),
        ([Turn()], "must be an object such as CropAndFlip"),
        (lambda x, u: x, "must be an object such as CropAndFlip"),
        ("flip", "must be an object such as CropAndFlip"),
    ],
)
def test_what_is_no_augmentation_is_refused_before_training(
    small: Samples, augment: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        trained(small, augment)


def test_an_augmentation_must_give_back_a_batch_like_it(small: Samples) -> None:
    class Larger:
        draws = 0

        def __call__(self, x: Tensor, u: Tensor) -> Tensor:
            return x.repeat(1, 1, 2, 2)

    with pytest.raises(InputError, match="must return a batch like the one it is given"):
        trained(small, Larger())


@pytest.mark.parametrize(
    "make", [lambda: CropAndFlip(-1), lambda: CropAndFlip(1.5), lambda: Turn(float("nan"))]
)
def test_impossible_numbers_are_refused(make: Callable[[], Augmentation]) -> None:
    with pytest.raises(InputError, match=r"must be a (whole )?number"):
        make()


def test_corners_are_mirrored_not_black() -> None:
    x = torch.full((1, 1, 8, 8), 200, dtype=torch.uint8)
    assert torch.equal(Turn(45)(x, torch.tensor([[1.0]])), x)


@pytest.fixture
def copies(small: Samples) -> Samples:
    return mirrored_and_rotated(small, 10, generator=generator(2))


def test_ten_copies_are_one_image_and_ten_angles(small: Samples, copies: Samples) -> None:
    assert len(copies) == 200
    assert isinstance(copies.x, View)
    assert copies.x.stored is small.x
    assert torch.equal(copies.y, small.y.repeat_interleave(10))
    assert torch.equal(copies.x[:].view(20, 10, 1, 8, 8)[:, 0], small.x)  # the image itself first


def test_half_of_the_copies_are_mirrored_and_all_are_turned(copies: Samples) -> None:
    assert isinstance(copies.x, View)
    assert copies.x.u is not None
    u = copies.x.u.view(20, 10, 2)
    assert u[:, :, 0].tolist() == [[0.0, 0.5] * 5] * 20
    assert len(u[:, 1:, 1].unique()) == 180
    for i, k in [(0, 1), (7, 4), (19, 9)]:
        image = copies.x.stored[i : i + 1]
        expected = MirrorAndTurn()(image, u[i, k : k + 1])
        assert torch.equal(copies.x[10 * i + k], expected[0])


def test_copies_can_be_reduced_and_trained_on(copies: Samples) -> None:
    part = copies.subset(torch.arange(0, 200, 3))
    assert isinstance(part.x, View)
    assert torch.equal(part.x[:5], copies.x[torch.arange(0, 15, 3)])
    network = lenet((1, 8, 8), 2, seed=0)
    assert len(train(network, part).rounds) == 2


def test_copies_of_copies_are_refused(copies: Samples) -> None:
    with pytest.raises(InputError, match="no copies themselves, found times=10 and copies"):
        mirrored_and_rotated(copies, generator=generator())


@pytest.mark.parametrize("times", [0, 2.5])
def test_impossible_copies_are_refused(small: Samples, times: int) -> None:
    with pytest.raises(InputError, match="times must be at least 1"):
        mirrored_and_rotated(small, times, generator=generator())
    with pytest.raises(InputError, match=r"images \(m, c, h, w\).* found times=2 and \(4, 3\)"):
        mirrored_and_rotated(Samples(torch.zeros(4, 3), [0, 1, 0, 1]), 2, generator=generator())
