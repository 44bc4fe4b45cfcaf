"""Networks by name: the right one, and weights from elsewhere where names match."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from deep_oversampling import InputError, Network, Normalize, save_weights
from deep_oversampling.checkpoint import start_from
from deep_oversampling.residual import resnet18
from deep_oversampling.zoo import choose_model, make_network


@pytest.mark.parametrize("model", ["lenet", "resnet18", "resnet32", "mlp"])
def test_a_name_makes_a_network(model: str) -> None:
    network = make_network(model, (3, 32, 32), 5, normalize=Normalize(0.5, 0.2))
    assert network.eval()(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape == (2, 5)


@pytest.mark.parametrize("model", ["lenet", "resnet18"])
def test_the_seed_decides_the_weights(model: str) -> None:
    same, again, other = (make_network(model, (3, 32, 32), 2, seed=s) for s in (1, 1, 2))
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(same.eval()(x), again.eval()(x))
    assert not torch.equal(same(x), other.eval()(x))


def test_size_chooses_the_model() -> None:
    shapes = [(7,), (1, 8, 8), (3, 63, 99), (3, 64, 64), (3, 2, 900)]
    assert [choose_model(s) for s in shapes] == ["mlp", "lenet", "lenet", "resnet18", "mlp"]


def test_resnet18_has_the_usual_names_and_size() -> None:
    state = resnet18(3, 1000).embedder.state_dict()
    for name in ("conv1.weight", "layer2.0.downsample.0.weight", "layer4.1.bn2.running_var"):
        assert name in state
    assert sum(p.numel() for p in resnet18(3, 1000).parameters()) == 11_689_512


def test_weights_from_elsewhere_fill_the_embedder(tmp_path: Path) -> None:
    theirs, ours = resnet18(3, 1000, seed=1), resnet18(3, 4, normalize=Normalize(0.1), seed=2)
    file = tmp_path / "resnet18.safetensors"
    state = {name: t.clone() for name, t in theirs.embedder.state_dict().items()}
    save_file(state | {"fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}, file)
    assert start_from(ours, file) == ["classifier.weight", "classifier.bias"]
    x = (torch.rand(2, 3, 64, 64) - 0.1).float()
    assert torch.allclose(ours.eval().embed(x + 0.1), theirs.eval().embed(x), atol=1e-4)
    assert float(ours.normalize.mean) == pytest.approx(0.1)


def test_weights_of_one_of_our_files_fill_all(tmp_path: Path) -> None:
    theirs, ours = (make_network("lenet", (1, 16, 16), 3, seed=s) for s in (1, 2))
    save_weights(theirs, tmp_path / "model.safetensors")
    assert start_from(ours, tmp_path / "model.safetensors") == []
    assert torch.equal(ours.classifier[0].weight, theirs.classifier[0].weight)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    save_weights(make_network("lenet", (1, 16, 16), 3), tmp_path / "lenet.safetensors")
    with pytest.raises(InputError, match=r"must hold the weights of this embedder.*conv1\.weight"):
        start_from(resnet18(3, 3), tmp_path / "lenet.safetensors")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, d, n):\n"
        "        super().__init__()\n"
        "        self.body, self.fc = nn.Flatten(), nn.Linear(d, n)\n"
        "    def forward(self, x): return self.fc(self.body(x))\n"
        "def good(shape, n): return Net(shape[0] * shape[1] * shape[2], n)\n"
        "def odd(shape, n): return 3\n"
        "def bad(shape, n): raise KeyError('no')\n"
    )
    network = make_network(f"{file}:good", (1, 4, 4), 3, normalize=Normalize(0.5))
    assert network.embed(torch.zeros(2, 1, 4, 4)).shape == (2, 16)
    for name, found in (("odd", "returned int"), ("bad", "KeyError"), ("none", "no such function")):
        with pytest.raises(InputError, match=found):
            make_network(f"{file}:{name}", (1, 4, 4), 3)
    with pytest.raises(InputError, match=r"found no .*other\.py"):
        make_network(f"{tmp_path / 'other.py'}:good", (1, 4, 4), 3)


class Timms(nn.Module):
    """As a model of timm looks from outside."""

    default_cfg = {"classifier": "head.fc"}  # noqa: RUF012

    def __init__(self, num_classes: int, in_chans: int, pretrained: bool) -> None:
        super().__init__()
        self.stem = nn.Flatten()
        self.head = nn.Sequential()
        self.head.add_module("drop", nn.Identity())
        self.head.add_module("fc", nn.Linear(in_chans * 64, num_classes))
        self.pretrained = pretrained

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stem(x))


def test_timm_is_split_at_its_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(name: str, **options: object) -> Timms:
        if name != "good":
            raise RuntimeError(f"Unknown model ({name})")
        return Timms(**options)

    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace(create_model=create))
    network = make_network("timm:good", (3, 8, 8), 5, pretrained=True)
    assert isinstance(network, Network)
    assert network.embedder.pretrained
    assert network.embed(torch.zeros(2, 3, 8, 8)).shape == (2, 192)
    with pytest.raises(InputError, match=r"Unknown model \(bad\)"):
        make_network("timm:bad", (3, 8, 8), 5)


def test_timm_is_made_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is opened checks its weights so, and there are no numbers to compare."""
    create = SimpleNamespace(create_model=lambda _, **options: Timms(**options))
    monkeypatch.setitem(sys.modules, "timm", create)
    with torch.device("meta"):
        assert make_network("timm:good", (3, 8, 8), 5).device.type == "meta"


def test_without_timm_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"pip install 'deep-oversampling\[timm\]'"):
        make_network("timm:resnet18", (3, 8, 8), 5)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="model must be auto or one of lenet"):
        make_network("alexnet", (3, 8, 8), 5)
    with pytest.raises(InputError, match="pretrained is for models of timm"):
        make_network("lenet", (3, 8, 8), 5, pretrained=True)
    with pytest.raises(InputError, match="needs images"):
        make_network("resnet18", (30,), 5)
