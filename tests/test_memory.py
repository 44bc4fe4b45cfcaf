"""A batch that does not fit into memory is taken in parts, and the result is the same."""

import gc
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from deep_oversampling import Network, Samples, embed, fit, lenet, predict
from deep_oversampling.history import Round
from deep_oversampling.memory import is_out_of_memory
from deep_oversampling.seeding import isolated
from toy import blobs, generator, small, weights

OPTIONS = {"rounds": 2, "batch_size": 12, "device": "cpu", "seed": 3}


class Fits(nn.Module):
    """As if there were memory for so many rows: where gradients are wanted, or always."""

    def __init__(
        self, rows: int, error: type[RuntimeError] = torch.OutOfMemoryError, always: bool = False
    ) -> None:
        super().__init__()
        self.rows, self.error, self.always, self.refused = rows, error, always, 0

    def forward(self, x: Tensor) -> Tensor:
        wanted = self.training and torch.is_grad_enabled()
        if (wanted or self.always) and len(x) > self.rows:
            self.refused += 1
            raise self.error("[DefaultCPUAllocator] can't allocate memory")
        return x


def limited(network: Network, rows: int, **options: Any) -> Fits:
    limit = Fits(rows, **options)
    network.embedder = nn.Sequential(limit, network.embedder)
    return limit


def few_weights() -> Network:
    """What it needs is for the batch, so half of a batch needs half of it."""
    with isolated(generator()):
        layers = [nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()]
        return Network(nn.Sequential(*layers), nn.Linear(256, 3))


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError])
@pytest.mark.parametrize(("rows", "times"), [(6, 1), (3, 2), (1, 4)])
def test_a_batch_is_halved_until_it_fits(
    rows: int, times: int, error: type[RuntimeError], caplog: pytest.LogCaptureFixture
) -> None:
    whole, split = small(), small()
    limit = limited(split, rows, error=error)
    told = fit(whole, blobs(), **OPTIONS)
    found = fit(split, blobs(), **OPTIONS)
    assert limit.refused == len(caplog.records) == times
    assert "out of memory with a batch of 12: the network takes it in 2 parts" in caplog.text
    torch.testing.assert_close(weights(split), weights(whole), rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(found.rounds, told.rounds, strict=True):
        assert ours.classifier_loss == pytest.approx(theirs.classifier_loss, rel=1e-5)
        assert ours.embedding_loss == pytest.approx(theirs.embedding_loss, rel=1e-4)
    assert split.parts == 1  # who uses the network afterwards need not know


@pytest.mark.parametrize("rows", [1, 5, 12])
def test_what_is_only_looked_at_is_halved_as_well(rows: int) -> None:
    """Embeddings of all samples, what a round is examined by, and probabilities."""
    whole, split = small(), small()
    limit = limited(split, rows, always=True)
    for network in (whole, split):
        fit(network, blobs(), **OPTIONS)
    torch.testing.assert_close(weights(split), weights(whole), rtol=1e-5, atol=1e-6)
    limit.refused = 0
    for function in (embed, predict):
        torch.testing.assert_close(function(split, blobs().x), function(whole, blobs().x))
    assert limit.refused > 1


def test_one_row_must_fit() -> None:
    network = small()
    limited(network, 0, always=True)
    with pytest.raises(torch.OutOfMemoryError):
        predict(network, blobs().x)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a GPU's memory can be limited")
def test_a_gpu_that_runs_out_of_memory(caplog: pytest.LogCaptureFixture) -> None:
    x = torch.randint(0, 256, (64, 3, 256, 256), generator=generator(), dtype=torch.uint8)
    samples, options = Samples(x, torch.arange(64) % 4 % 3), {**OPTIONS, "device": "cuda"}
    whole, split = few_weights(), few_weights()
    gc.collect()  # what earlier tests left
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before, others = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    fit(whole, samples, **{**options, "batch_size": 64})
    used = torch.cuda.max_memory_allocated() - before
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((others + 0.7 * used) / total)
    try:
        fit(split, samples, **{**options, "batch_size": 64})
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert "out of memory with a batch of 64" in caplog.text
    torch.testing.assert_close(weights(split), weights(whole), rtol=1e-2, atol=1e-3)


def test_samples_that_do_not_fit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    network = small()
    before = weights(network).clone()
    samples = blobs()
    monkeypatch.setattr(samples.x, "to", full)
    with pytest.raises(torch.OutOfMemoryError, match=r"room for the \d+ samples.* View"):
        fit(network, samples, **OPTIONS)
    assert torch.equal(weights(network), before)


def test_dropout_draws_for_the_gradient_what_it_drew_before() -> None:
    """Computed again, a part must see the same mask: else the gradient is of another function."""
    with isolated(generator()):
        layers = [nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 5)]
        network = Network(nn.Sequential(*layers), nn.Linear(5, 3)).train()
    x = torch.randn(8, 4, generator=generator())
    gradients = []
    for parts in (1, 2):
        network.parts = parts
        network.zero_grad()
        with isolated(generator()):
            v = network.embed(x)
        seen = v.detach()
        v.square().sum().backward()
        gradients.append(layers[2].bias.grad.clone())
        torch.testing.assert_close(gradients[-1], 2 * seen.sum(0))


def test_pictures(caplog: pytest.LogCaptureFixture) -> None:
    x = torch.randint(0, 256, (40, 1, 16, 16), generator=generator(), dtype=torch.uint8)
    samples = Samples(x, torch.tensor([0] * 28 + [1] * 12))
    whole, split = lenet((1, 16, 16), 2), lenet((1, 16, 16), 2)
    limited(split, 6)
    fit(whole, samples, **OPTIONS)
    fit(split, samples, **OPTIONS)
    torch.testing.assert_close(weights(split), weights(whole), rtol=1e-4, atol=1e-6)


def test_batch_norm_would_see_other_batches() -> None:
    with isolated(generator()):
        layers = [nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5)]
        network = Network(nn.Sequential(*layers), nn.Linear(5, 3))
    limited(network, 6)
    words = (
        r"round 1 \(single-task\): memory must hold a batch of 12, found .* lower the batch size"
    )
    with pytest.raises(torch.OutOfMemoryError, match=words):
        fit(network, blobs(), **OPTIONS)


def test_the_last_good_weights_are_kept() -> None:
    """Memory may be short later, when another program takes it."""

    def taken(one: Round) -> None:
        kept.append(weights(network))
        if one.task == "multi":
            limit.rows = 0

    network, kept = small(), list[Tensor]()
    limit = limited(network, 99)
    with pytest.raises(torch.OutOfMemoryError, match=r"^round 4 .* weights from before that again"):
        fit(network, blobs(), on_round=taken, **OPTIONS)
    assert len(kept) == 3
    assert torch.equal(weights(network), kept[-1])


def test_what_is_too_much_for_a_single_row_is_an_error() -> None:
    network = small()
    limited(network, 0)
    with pytest.raises(torch.OutOfMemoryError):
        fit(network, blobs(), **OPTIONS)
    assert network.parts == 1


def test_other_errors_are_no_lack_of_memory() -> None:
    assert not is_out_of_memory(RuntimeError("shapes do not fit"))
