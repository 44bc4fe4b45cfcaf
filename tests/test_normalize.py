"""From storage to what a network eats: the numbers are numpy's, integers pass as they are."""

import numpy as np
import pytest
import torch
from torch import Tensor

from deep_oversampling import Normalize
from toy import generator

close = torch.testing.assert_close


def data() -> dict[str, tuple[Tensor, tuple[int, ...]]]:
    """Samples, and the axes that numpy takes the mean over."""
    draw = generator()
    pixels = torch.randint(256, (5000, 3, 2, 2), dtype=torch.uint8, generator=draw)
    return {
        "features": (3 + 2 * torch.randn(50, 4, generator=draw), (0,)),
        "double features": (torch.randn(50, 4, generator=draw).double(), (0,)),
        "series": (torch.randn(20, 6, 7, generator=draw), (0, 1, 2)),
        "images in bytes": (pixels, (0, 2, 3)),  # more than one chunk
        "images in floats": (torch.rand(20, 3, 5, 5, generator=draw), (0, 2, 3)),
        "volumes": (torch.rand(10, 1, 3, 3, 3, generator=draw), (0, 1, 2, 3, 4)),
        "one sample": (torch.randn(1, 3, 4, 4, generator=draw), (0, 2, 3)),
    }


@pytest.mark.parametrize("name", data())
def test_normalisation_is_numpys(name: str) -> None:
    x, axes = data()[name]
    array = x.numpy().astype(np.float64) / (255 if x.dtype == torch.uint8 else 1)
    mean, std = array.mean(axes, keepdims=True), array.std(axes, keepdims=True)
    normalize = Normalize.of(x)
    np.testing.assert_allclose(normalize.mean, mean[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(normalize.std, std[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(normalize(x), (array - mean) / std, rtol=1e-4, atol=1e-4)


def test_constant_feature_is_only_shifted() -> None:
    x = torch.tensor([[1.0, 7.0], [3.0, 7.0]])
    close(Normalize.of(x)(x), torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))


def test_token_ids_pass_as_they_are() -> None:
    x = torch.tensor([[3, 1, 4]])
    assert torch.equal(Normalize.of(x)(x), x)
    assert torch.equal(Normalize(5.0, 2.0)(x), x)


def test_bytes_become_floats_between_zero_and_one() -> None:
    x = torch.tensor([[0, 51, 255]], dtype=torch.uint8)
    close(Normalize()(x), torch.tensor([[0.0, 0.2, 1.0]]))


def test_precision_is_the_networks() -> None:
    x = torch.rand(2, 3, generator=generator()).double()
    assert Normalize()(x).dtype == torch.float32
    assert Normalize().double()(x.float()).dtype == torch.float64


def test_it_is_saved_but_not_trained() -> None:
    normalize = Normalize(torch.tensor([1.0, 2.0]), 3.0)
    assert list(normalize.parameters()) == []
    assert set(normalize.state_dict()) == {"mean", "std"}
