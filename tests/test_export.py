"""What is exported answers as the network does, for batches of any size."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

from deep_oversampling import InputError, Network, Normalize, lenet
from deep_oversampling.export import to_onnx, to_safetensors, to_torch_export
from deep_oversampling.residual import resnet18


def images(m: int, side: int = 16) -> Tensor:
    generator = torch.Generator().manual_seed(m)
    return torch.randint(0, 256, (m, 3, side, side), dtype=torch.uint8, generator=generator)


def network() -> Network:
    return lenet((3, 16, 16), 3, normalize=Normalize.of(images(20)))


def expected(network: Network, x: Tensor, temperature: float) -> list[Tensor]:
    with torch.no_grad():
        logits = network.eval()(x)
        return [logits, (logits / temperature).softmax(1), network.embed(x)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("make", [network, lambda: resnet18(3, 3)], ids=["lenet", "resnet18"])
def test_onnx_gives_the_same(make, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    path, net = tmp_path / "model.onnx", make()
    to_onnx(net, path, images(1), temperature=2.0, classes=["a", "b", "ç"])
    session = runtime.InferenceSession(path)
    for m in (1, 2, 7):
        found = session.run(None, {"x": images(m).numpy()})
        for one, other in zip(found, expected(net, images(m), 2.0), strict=True):
            assert torch.allclose(torch.tensor(one), other, rtol=1e-3, atol=1e-5)
    about = session.get_modelmeta().custom_metadata_map
    assert about["temperature"] == "2.0"
    assert "a" in about["classes"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:The given buffer is not writable")  # of torch 2.11's reader
def test_torch_export_gives_the_same(tmp_path: Path) -> None:
    path, net = tmp_path / "model.pt2", network()
    to_torch_export(net, path, images(1), temperature=2.0, classes=["a"])
    about = {"classes.json": ""}
    with path.open("rb") as file:
        program = torch.export.load(file, extra_files=about).module()
    for m in (1, 5):
        for one, other in zip(program(images(m)), expected(net, images(m), 2.0), strict=True):
            assert torch.allclose(one, other, atol=1e-6)
    assert "a" in str(about["classes.json"])


def test_safetensors_say_what_they_are(tmp_path: Path) -> None:
    to_safetensors(network(), tmp_path / "m.safetensors", temperature=1.5, classes=["a", "b"])
    with safe_open(tmp_path / "m.safetensors", "pt") as file:
        assert file.metadata() == {"classes": '["a", "b"]', "temperature": "1.5"}
        assert "normalize.mean" in file.keys()  # noqa: SIM118


class Fickle(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1) if float(x.sum()) > 0 else -x.flatten(1)


def test_what_cannot_be_exported_is_said_in_a_line(tmp_path: Path) -> None:
    fickle = Network(Fickle(), nn.Linear(3, 2)).train()
    with pytest.raises(InputError, match="cannot be exported") as caught:
        to_torch_export(fickle, tmp_path / "m.pt2", torch.rand(2, 3))
    assert "\n" not in str(caught.value)
    assert fickle.training
    assert not list(tmp_path.iterdir())


def test_without_onnx_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deep_oversampling.export.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs onnx and onnxscript.*\[onnx\]"):
        to_onnx(network(), tmp_path / "m.onnx", images(2))


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can be written to"):
        to_torch_export(network(), tmp_path / "none" / "m.pt2", images(2))
