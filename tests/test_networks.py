"""Any network can be trained: images, token ids, feature vectors, models that exist already."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from deep_oversampling import (
    InputError,
    Network,
    Normalize,
    Samples,
    embed,
    lenet,
    mlp,
    predict,
    resnet32,
)
from deep_oversampling.network import is_wide, pick_device
from toy import blobs, generator, small, train, weights
from zoo import LastState, ResNet, Transformer, regularised

Y = torch.tensor([0] * 20 + [1] * 12 + [2] * 6)


def images(side: int = 8, channels: int = 1) -> Samples:
    """uint8 images whose brightness tells the class."""
    noise = torch.randint(60, (len(Y), channels, side, side), generator=generator())
    return Samples((noise + 80 * Y.view(-1, 1, 1, 1)).to(torch.uint8), Y)


def sentences(length: int = 5) -> Samples:
    """Token ids, int64; a class draws from its own four of twelve tokens."""
    tokens = torch.randint(4, (len(Y), length), generator=generator())
    return Samples(tokens + 4 * Y.unsqueeze(1), Y)


CASES: dict[str, tuple[Callable[[], Network], Callable[[], Samples]]] = {
    "lenet": (lambda: lenet((1, 8, 8), 3, "C3-C4-F12-F8"), images),
    "ResNet-32": (lambda: resnet32(1, 3), images),
    "LSTM": (lambda: Network(LastState(nn.LSTM), nn.Linear(8, 3)), sentences),
    "GRU": (lambda: Network(LastState(nn.GRU), nn.Linear(8, 3)), sentences),
    "tabular MLP": (lambda: mlp(4, 3, (16, 8)), blobs),
    "batch norm and dropout": (lambda: Network(regularised(), nn.Linear(16, 3)), blobs),
    "ResNet": (lambda: Network.from_model(ResNet()), images),
    "transformer": (lambda: Network.from_model(Transformer(), "heads.head"), images),
    "deep classifier": (
        lambda: Network(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 3))),
        blobs,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_training_changes_f_and_g_and_lowers_the_loss(case: str) -> None:
    make, data = CASES[case]
    network, samples = make(), data()
    stored = samples.x.dtype
    before = [weights(part) for part in (network.embedder, network.classifier)]
    at_first = cross_entropy(predict(network, samples.x).log(), samples.y)
    history = train(network, samples, rounds=3, batch_size=10)
    assert [r.task for r in history.rounds] == ["single"] * 3 + ["multi"] * 3
    assert history.rounds[-1].presented > len(samples)
    for part, old in zip((network.embedder, network.classifier), before, strict=True):
        assert not torch.equal(weights(part), old)
    assert cross_entropy(predict(network, samples.x).log(), samples.y) < at_first
    assert samples.x.dtype == stored  # uint8 stays uint8, token ids stay int64


def test_batch_statistics_are_trained_too() -> None:
    network = Network(regularised(), nn.Linear(16, 3))
    train(network, blobs())
    assert network.embedder[1].num_batches_tracked > 0
    assert network.embedder[1].running_mean.abs().sum() > 0


LENETS = [
    (side, layers, split)
    for side in (28, 32, 96)
    for layers in ("C6-C16-F400-F120", "C20-C50-F500-F120")
    for split in (None, layers.split("-")[2])
]


@pytest.mark.parametrize(("side", "layers", "split"), LENETS)
def test_the_papers_networks_have_their_sizes(side: int, layers: str, split: str | None) -> None:
    channels = 1 if side == 28 else 3
    network = lenet((channels, side, side), 10, layers, split=split)
    x = torch.zeros(2, channels, side, side, dtype=torch.uint8)
    d = int((split or layers.split("-")[-1])[1:])
    assert network.embed(x).shape == (2, d)
    assert network(x).shape == (2, 10)
    whole = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    sizes = [int(name[1:]) for name in layers.split("-")]
    assert [getattr(m, "out_channels", None) or m.out_features for m in whole] == [*sizes, 10]


def test_resnet32_has_the_layers_and_parameters_of_he_et_al() -> None:
    network = resnet32()
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == 32
    assert round(len(weights(network)) / 1e6, 2) == 0.46  # million, by their table 6
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_both_splits_are_the_same_function() -> None:
    x = torch.rand(2, 1, 28, 28, generator=generator())
    torch.testing.assert_close(lenet()(x), lenet(split="F400")(x))


@pytest.mark.parametrize(("side", "layers", "split"), LENETS)
def test_the_papers_networks_are_trained(side: int, layers: str, split: str | None) -> None:
    samples = images(side, 1 if side == 28 else 3)
    network = lenet(tuple(samples.x.shape[1:]), 3, layers, split=split)
    before = cross_entropy(predict(network, samples.x).log(), samples.y)
    train(network, samples, rounds=2, batch_size=19)
    assert cross_entropy(predict(network, samples.x).log(), samples.y) < before


@pytest.mark.parametrize(
    ("layers", "split", "message"),
    [
        ("C6-X16", None, "layers must be convolutions C… and then fully connected ones F…"),
        ("C6-C16", None, "layers must be convolutions"),
        ("F400-F120", None, "layers must be convolutions"),
        ("C6-F0", None, "layers must be convolutions"),
        ("F10-C6-F5", None, "layers must be convolutions"),
        ("C6-F10-C6-F5", None, "layers must be convolutions"),
        ("C6-F9", "C6", r"split must be a fully connected layer \(F9\), found 'C6'"),
        ("C6-F9", "F8", r"split must be a fully connected layer \(F9\), found 'F8'"),
    ],
)
def test_layer_strings_are_checked(layers: str, split: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        lenet(layers=layers, split=split)


def test_default_split_is_the_last_layer_also_where_two_have_one_size() -> None:
    network = lenet((1, 8, 8), 3, "C2-F8-F8")
    assert [type(m) for m in network.classifier] == [nn.Linear]  # R10


def test_model_is_split_at_its_head_and_shares_its_parameters() -> None:
    model = ResNet()
    network = Network.from_model(model)
    samples = images()
    old, statistics = weights(model), model.layer1[0].norm.running_mean.clone()
    assert {id(p) for p in network.parameters()} == {id(p) for p in model.parameters()}
    train(network, samples, batch_size=10)
    assert not torch.equal(weights(model), old)
    assert not torch.equal(model.layer1[0].norm.running_mean, statistics)
    model.eval()
    with torch.no_grad():
        direct = model(samples.x.float() / 255).softmax(1)
    torch.testing.assert_close(predict(network, samples.x), direct)


@pytest.mark.parametrize(("make", "head", "d"), [(ResNet, "fc", 8), (Transformer, "heads.head", 6)])
def test_embedding_is_what_the_model_feeds_to_its_head(make, head: str, d: int) -> None:
    model, fed = make(), []
    hook = model.get_submodule(head).register_forward_hook(
        lambda module, inputs, output: fed.append(inputs[0])
    )
    x = torch.rand(3, 1, 8, 8, generator=generator())
    model.eval()(x)
    hook.remove()
    network = Network.from_model(model, head).eval()
    assert network.embed(x).shape == (3, d)
    torch.testing.assert_close(network.embed(x), fed[0])
    assert isinstance(model.get_submodule(head), nn.Linear)  # the model itself is left as it is


@pytest.mark.parametrize(
    ("head", "near"), [("fx", "'fc'"), ("heads.haed", "'heads.head'"), ("", "near ones")]
)
def test_unknown_head_names_the_near_ones(head: str, near: str) -> None:
    model = ResNet() if head == "fx" else Transformer()
    with pytest.raises(InputError, match=f"dotted path of a module .* found '{head}'; .*{near}"):
        Network.from_model(model, head)


def test_network_and_normalisation_survive_saving() -> None:
    samples = images()
    make = lambda x: lenet((1, 8, 8), 3, "C3-C4-F8", normalize=Normalize.of(x))  # noqa: E731
    trained = make(samples.x)
    train(trained, samples)
    other = make(torch.zeros_like(samples.x))
    assert not torch.equal(predict(other, samples.x), predict(trained, samples.x))
    other.load_state_dict(trained.state_dict())
    assert torch.equal(predict(other, samples.x), predict(trained, samples.x))
    assert torch.equal(other.normalize.mean, trained.normalize.mean)


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_embed_and_predict_do_not_depend_on_the_chunks(batch_size: int) -> None:
    network, samples = Network(regularised(), nn.Linear(16, 3)), blobs()
    torch.testing.assert_close(
        embed(network, samples.x, batch_size=batch_size), embed(network, samples.x)
    )
    found = predict(network, samples.x, batch_size=batch_size)
    torch.testing.assert_close(found, predict(network, samples.x))
    torch.testing.assert_close(found.sum(1), torch.ones(len(samples)))


@pytest.mark.parametrize("training", [True, False])
def test_embed_evaluates_and_then_leaves_the_mode_as_it_was(training: bool) -> None:
    network = Network(regularised(), nn.Linear(16, 3)).train(training)
    samples = blobs()
    v = embed(network, samples.x)
    assert network.training == training
    assert not v.requires_grad
    torch.testing.assert_close(v, network.eval().embed(samples.x).detach())


class Pair(nn.Module):
    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("embedder", "found"),
    [
        (nn.Conv2d(1, 2, 3), r"shape \(5, d\), found \(5, 2, 6, 6\)"),
        (nn.Flatten(0), r"found \(320,\)"),
        (nn.Flatten(0, 1), r"found \(5, 8, 8\)"),
        (nn.Unflatten(0, (1, 5)), r"found \(1, 5, 1, 8, 8\)"),
        (Pair(), "found tuple"),
    ],
)
def test_embedder_must_return_a_vector_per_sample(embedder: nn.Module, found: str) -> None:
    with pytest.raises(InputError, match=f"one vector per sample, .*{found}; end it with"):
        Network(embedder, nn.Identity()).embed(torch.zeros(5, 1, 8, 8))


def test_device_is_the_one_asked_for() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    assert pick_device() == pick_device("auto")
    network = small()
    train(network, blobs(), device="cpu")
    assert network.device == torch.device("cpu")
    assert Network(nn.Flatten(), nn.Identity()).device == torch.device("cpu")


def test_a_torch_built_for_a_gpu_that_is_not_there_trains_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def built_for_cuda(check_available: bool = False) -> torch.device | None:
        return None if check_available else torch.device("cuda")

    monkeypatch.setattr(torch.accelerator, "current_accelerator", built_for_cuda)
    assert pick_device() == torch.device("cpu")
    network = small()
    train(network, blobs())
    assert network.device == torch.device("cpu")


class Softmaxed(nn.Module):
    """A model that goes on after its head, as many tutorials have it."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.fc = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.body(x).relu()).log_softmax(1)


def test_a_model_that_goes_on_after_its_head_is_refused_by_an_example() -> None:
    model = Softmaxed()
    with pytest.raises(InputError, match="head must be the last thing the model computes"):
        Network.from_model(model, example=torch.rand(5, 4))
    assert model.training


def test_an_example_leaves_model_and_statistics_alone() -> None:
    model, x = ResNet(), images().x[:4].float()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    network = Network.from_model(model, example=x)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert {id(p) for p in network.parameters()} == {id(p) for p in model.parameters()}


def test_wide_networks_have_channels_for_tensor_cores() -> None:
    assert is_wide(resnet32())
    assert not is_wide(lenet())
    assert not is_wide(mlp(4, 3))
