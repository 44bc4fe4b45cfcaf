"""Weights go to a file and come back; a file that does not fit changes nothing."""

import os
from pathlib import Path

import pytest
import torch
from torch import nn

from deep_oversampling import (
    InputError,
    Network,
    Normalize,
    embed,
    lenet,
    load_weights,
    mlp,
    predict,
    save_weights,
)
from toy import weights


def images() -> torch.Tensor:
    return torch.randint(0, 256, (7, 1, 8, 8), dtype=torch.uint8)


def test_a_loaded_network_predicts_the_same_its_normalisation_included(tmp_path: Path) -> None:
    x = images()
    network = lenet((1, 8, 8), 3, normalize=Normalize.of(x), seed=1)
    save_weights(network, tmp_path / "net.safetensors")
    other = lenet((1, 8, 8), 3, normalize=Normalize(torch.zeros(1, 1, 1), torch.ones(1, 1, 1)))
    load_weights(other, tmp_path / "net.safetensors")
    assert torch.equal(predict(other, x), predict(network, x))


def test_tied_weights_are_saved(tmp_path: Path) -> None:
    layer = nn.Linear(4, 4)
    network = Network(nn.Sequential(layer, nn.ReLU(), layer), nn.Linear(4, 2))
    save_weights(network, tmp_path / "tied.safetensors")
    load_weights(network, tmp_path / "tied.safetensors")
    assert network.embedder[0].weight is network.embedder[2].weight
    assert embed(network, torch.rand(3, 4)).shape == (3, 4)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: mlp(4, 2, (8, 8)), r"another shape: \['classifier.weight'"),
        (lambda: mlp(4, 2, (5,)), r"missing: \[\], unknown: \['embedder.3"),
        (lambda: mlp(4, 2, (5, 7, 9)), r"missing: \['embedder.5"),
    ],
)
def test_weights_of_another_architecture_are_refused(other, message: str, tmp_path: Path) -> None:
    save_weights(mlp(4, 2, (5, 7), seed=1), tmp_path / "net.safetensors")
    network = other()
    before = weights(network).clone()
    with pytest.raises(InputError, match=message):
        load_weights(network, tmp_path / "net.safetensors")
    assert torch.equal(weights(network), before)


@pytest.mark.parametrize("content", [None, b"", b"not safetensors at all", b"\xff" * 64])
def test_a_file_that_cannot_be_read_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"broken.safetensors must be a safetensors file"):
        load_weights(mlp(4, 2), path)


def test_a_failed_write_leaves_the_earlier_file(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "net.safetensors"
    save_weights(mlp(4, 2, seed=1), path)
    earlier = path.read_bytes()

    def full(handle: int) -> None:
        os.truncate(handle, 100)
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="no space"):
        save_weights(mlp(4, 2, seed=2), path)
    assert path.read_bytes() == earlier
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_it_as_any_other_file(tmp_path: Path) -> None:
    save_weights(lenet(), tmp_path / "model.safetensors")
    (tmp_path / "other").write_bytes(b"")
    modes = [(tmp_path / name).stat().st_mode for name in ("model.safetensors", "other")]
    assert modes[0] == modes[1]
