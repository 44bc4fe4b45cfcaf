"""Turned digits before photographs, in integers: exact where it can be, right elsewhere."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import affine_grid, grid_sample

from deep_oversampling import InputError
from deep_oversampling.data.official import recreation
from deep_oversampling.data.official.recreation import (
    FULL_TURN,
    cosines,
    digest_of,
    patches,
    photographs,
    recreated,
    rotated,
)
from toy import generator

IMAGES = np.random.default_rng(0).integers(0, 256, (300, 28, 28), np.uint8)  # more than a chunk
ONE = 2**16


def test_no_cosine_is_near_where_rounding_turns() -> None:
    """So the last digits of a machine's cosine cannot change the table."""
    exact = [ONE * math.cos(math.tau * a / FULL_TURN) for a in range(FULL_TURN)]
    assert min(abs(c % 1 - 0.5) for c in exact) > 1e-9
    assert cosines().tolist() == [round(c) for c in exact]


def test_quarter_turns_are_exact() -> None:
    for quarters in range(4):
        turned = rotated(IMAGES, np.full(len(IMAGES), quarters * FULL_TURN // 4))
        assert np.array_equal(turned, np.rot90(IMAGES, quarters, (1, 2)))


def test_angles_between_agree_with_floating_point() -> None:
    angles = np.random.default_rng(1).integers(0, FULL_TURN, len(IMAGES))
    radians = torch.from_numpy(angles) * (math.tau / FULL_TURN)
    cos, sin, zero = radians.cos(), radians.sin(), torch.zeros(len(IMAGES))
    turn = torch.stack([cos, -sin, zero, sin, cos, zero], 1).view(-1, 2, 3).double()
    x = torch.from_numpy(IMAGES)[:, None].double()
    grid = affine_grid(turn, list(x.shape), align_corners=False)
    expected = grid_sample(x, grid, align_corners=False)[:, 0].numpy()
    assert abs(rotated(IMAGES, angles) - expected).max() < 1


def test_white_stays_white_within_and_black_around_it() -> None:
    """At every angle: the weights of the four pixels add up, and no corner leaves the margin."""
    angles = np.arange(0, FULL_TURN, 61)
    turned = rotated(np.full((len(angles), 28, 28), 255, np.uint8), angles)
    row, column = np.mgrid[:28, :28] - 13.5
    assert (turned[:, np.hypot(row, column) <= 13] == 255).all()
    eighth = rotated(IMAGES[:1], np.array([FULL_TURN // 8]))[0]
    assert not eighth[[0, 0, -1, -1], [0, -1, 0, -1]].any()


def test_a_turn_and_the_turn_back_nearly_cancel() -> None:
    row, column = np.mgrid[:28, :28] - 13.5
    smooth = (255 * np.exp(-(row**2 + (column - 3) ** 2) / 30)).astype(np.uint8)[None]
    there = rotated(smooth, np.array([5000]))
    back = rotated(there, np.array([FULL_TURN - 5000])).astype(int)
    assert abs(there.astype(int) - smooth).max() > 50
    assert abs(back - smooth).max() < 12


def test_patches_are_pieces_with_contrast() -> None:
    photos = np.full((2, 40, 50), 100, np.uint8)
    photos[1, :, 30:] = 160  # a window needs enough of both sides
    found = patches(photos, 200, generator=generator())
    assert found.shape == (200, 28, 28)
    assert found.dtype == np.uint8
    assert (found.reshape(200, -1).std(1, ddof=1) > 20).all()
    widths = {int((piece[0] == 160).sum()) for piece in found}
    assert widths == {
        w for w in range(1, 21) if np.repeat([100, 160], [28 * (28 - w), 28 * w]).std(ddof=1) > 20
    }


def test_patches_depend_on_the_generator_alone() -> None:
    photos = np.random.default_rng(2).integers(0, 256, (2, 60, 60), np.uint8)
    first, again, other = (patches(photos, 5, generator=generator(s)) for s in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_pixel_is_the_brighter_one_of_digit_and_background() -> None:
    labels = np.arange(300) % 10
    black, y = recreated(np.zeros_like(IMAGES), labels, seed=3)
    made, again = recreated(IMAGES, labels, seed=3)
    assert (made >= black).all()
    assert (made > black).any()
    assert sorted(y) == sorted(labels)
    assert np.array_equal(y, again)
    assert not np.array_equal(y, labels)


def test_what_is_made_is_the_same_everywhere() -> None:
    """A small set, so that another machine is noticed where the official files are missing."""
    x = (np.arange(64 * 784) * 7919 % 256).astype(np.uint8).reshape(64, 28, 28)
    made, y = recreated(x, np.arange(64, dtype=np.uint8), seed=2007)
    assert digest_of(made, y) == "4e91222a4d1f4a11c9c12cfae0d405c3"


def test_other_photographs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert photographs().shape == (2, 427, 640)
    monkeypatch.setattr(recreation, "_PHOTOGRAPHS", "0123")
    expected = (
        "sample photographs must have the fingerprint 0123, found [0-9a-f]{32}: this JPEG decoder "
        "gives other pixels; install Pillow from its own packages"
    )
    with pytest.raises(InputError, match=expected):
        photographs()
