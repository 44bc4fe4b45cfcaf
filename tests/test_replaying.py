"""Steps that are recorded and replayed: the same training, and what happens where they cannot be.

CUDA graphs need a GPU. Without one a recorder stands in that keeps their rules: a recording does
nothing itself, and a replay reads and writes the same tensors as when it was recorded.
"""

import gc
import logging
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam
from torch.optim.lr_scheduler import ExponentialLR, MultiplicativeLR

from deep_oversampling import (
    Engine,
    InputError,
    Network,
    Plan,
    Samples,
    fit,
    fit_many,
    lenet,
    measure,
    predict,
    resnet32,
    training,
)
from deep_oversampling.cuda_graphs import CudaGraphs
from deep_oversampling.objectives import single_task
from deep_oversampling.seeding import isolated, streams
from deep_oversampling.stages import Stage, train_stages
from toy import blobs, generator, small, train, weights

close = torch.testing.assert_close
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")


class Again:
    """Calls the function again."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal, self.recorded, self.aside_steps, self.replayed = refusal, 0, 0, 0

    def aside(self, function: Callable[[], None]) -> None:
        self.aside_steps += 1
        function()

    def record(self, function: Callable[[], None]) -> Callable[[], object]:
        if self.refusal:
            raise RuntimeError(self.refusal)
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            function()

        return replay


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Again:
    """Stands in for CUDA graphs, on the CPU."""
    found = Again()
    plain = training.Replay
    monkeypatch.setattr(training, "Replay", lambda step, _: plain(step, found))
    return found


OPTIONS = {"rounds": 3, "batch_size": 4, "device": "cpu"}
PLAN = Plan(k=[0, 2, 3], r=[1, 1, 4])


def trained(**options) -> Tensor:
    network = small()
    fit(network, blobs(), PLAN, **{**OPTIONS, **options})
    return weights(network)


def test_replayed_steps_train_as_others_do(recorder: Again, monkeypatch) -> None:
    replayed = trained()
    assert recorder.recorded == 2  # a single-task and a multi-task step
    steps = 3 * 10 + 3 * 14  # of 38 and of 56 rows
    assert recorder.aside_steps == 3 + 3
    assert recorder.replayed == steps - 6
    monkeypatch.undo()
    assert torch.equal(replayed, trained())


def test_a_stack_with_other_lengths_is_replayed_too(recorder: Again, monkeypatch) -> None:
    def stack() -> list[Tensor]:
        networks = [small(seed=seed) for seed in range(3)]
        plans = [Plan(k=[0, 0, 2], r=[1, 1, r]) for r in (2, 5, 9)]
        fit_many(networks, blobs(), plans, at_once=3, **OPTIONS)
        return [weights(network) for network in networks]

    replayed = stack()
    assert recorder.recorded >= 3  # all awake, and some asleep
    monkeypatch.undo()
    for one, other in zip(replayed, stack(), strict=True):
        assert torch.equal(one, other)


def test_another_learning_rate_is_another_recording(recorder: Again, monkeypatch) -> None:
    options = {"schedule": lambda optimizer: ExponentialLR(optimizer, 0.5)}
    replayed = trained(**options)
    assert recorder.recorded == 6
    monkeypatch.undo()
    assert torch.equal(replayed, trained(**options))


def test_an_optimiser_that_forgets_needs_another_recording(recorder: Again) -> None:
    """The old one writes to a momentum that is not there any more."""
    network, samples = small(), blobs()
    anew = [False, False, True]
    stages = (Stage("single", samples, single_task, starts_anew=one) for one in anew)
    train_stages(network, stages, batch_size=4, rng=streams(0))
    assert recorder.recorded == 2


def some_rounds_without_neighbours() -> tuple[Plan, dict[str, int]]:
    """A cautious plan, and how long to train by it: g knows little at first."""
    return Plan(k=[0, 0, 5], r=[1, 1, 3]).cautious(0.3), {"rounds": 20, "initial_rounds": 1}


def test_rounds_without_neighbours_have_a_recording_of_their_own(
    recorder: Again, monkeypatch
) -> None:
    plan, length = some_rounds_without_neighbours()
    network = small()
    history = train(network, blobs(), plan, batch_size=4, **length)
    assert {one.embedding_loss > 0 for one in history.rounds[1:]} == {False, True}
    assert recorder.recorded >= 3  # single-task, multi-task without neighbours, and with
    monkeypatch.undo()
    same = small()
    train(same, blobs(), plan, batch_size=4, **length)
    assert torch.equal(weights(network), weights(same))


def test_a_refusal_is_said_once_and_training_goes_on(
    recorder: Again, monkeypatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.refusal = "operation not permitted\nand a long tail"
    with caplog.at_level(logging.WARNING):
        found = trained()
    (record,) = caplog.records
    assert record.message.endswith("does not allow: operation not permitted")
    monkeypatch.undo()
    assert torch.equal(found, trained())


def test_running_out_of_memory_is_no_refusal(recorder: Again, monkeypatch) -> None:
    def scarce(function: Callable[[], None]) -> Callable[[], object]:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(recorder, "record", scarce)
    with pytest.raises(torch.OutOfMemoryError):
        trained()


# on a GPU


class Flips(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if float(x.detach().sum()) > 0 else -x


def with_layer(layer: Callable[[], nn.Module]) -> Callable[[int], Network]:
    def make(seed: int) -> Network:
        with isolated(generator(seed)):
            embedder = nn.Sequential(nn.Linear(4, 16), layer(), nn.ReLU(), nn.Linear(16, 8))
            return Network(embedder, nn.Linear(8, 3))

    return make


NETWORKS = {
    "mlp": lambda seed: small(seed=seed),
    "batch norm": with_layer(lambda: nn.BatchNorm1d(16)),
    "data-dependent": with_layer(lambda: nn.Sequential(Flips(), nn.Dropout(0.0))),
}
OPTIMIZERS = {
    "sgd": partial(SGD, lr=0.01, momentum=0.9),
    "nesterov, decay": partial(SGD, lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": partial(Adam, lr=1e-3, eps=1e-3),  # a gradient that is rounding stays small
}


def on_cuda(
    make: Callable[[int], Network], engine: Engine, at_once: int, **options
) -> list[Tensor]:
    networks = [make(seed) for seed in range(3)]
    options = {**OPTIONS, "device": "cuda", "engine": engine, "at_once": at_once, **options}
    plans = [options.pop("plan", PLAN)] * 3
    fit_many(networks, [blobs(seed=e) for e in range(3)], plans, **options)
    return [weights(network).cpu() for network in networks]


@on_gpu
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_graph_is_eager_is_stacked(make, optimizer) -> None:
    options = {"optimizer": optimizer}
    eager = on_cuda(make, Engine(replay=False), 1, **options)
    for engine, at_once in ((Engine(), 1), (Engine(), 3), (Engine(replay=False), 3)):
        for one, other in zip(eager, on_cuda(make, engine, at_once, **options), strict=True):
            close(other, one, rtol=1e-3, atol=1e-4)


@on_gpu
def test_rounds_without_neighbours_on_a_gpu() -> None:
    plan, length = some_rounds_without_neighbours()
    eager = on_cuda(NETWORKS["mlp"], Engine(replay=False), 1, plan=plan, **length)
    for at_once in (1, 3):
        replayed = on_cuda(NETWORKS["mlp"], Engine(), at_once, plan=plan, **length)
        for one, other in zip(eager, replayed, strict=True):
            close(other, one, rtol=1e-3, atol=1e-4)


@on_gpu
def test_a_schedule_is_followed_on_a_gpu(caplog: pytest.LogCaptureFixture) -> None:
    def half(_: int) -> float:
        gc.collect()  # so that the graph of the round before is gone for good
        return 0.5

    options = {"schedule": lambda optimizer: MultiplicativeLR(optimizer, half)}
    eager = on_cuda(NETWORKS["mlp"], Engine(replay=False), 1, **options)
    with caplog.at_level(logging.WARNING):
        replayed = on_cuda(NETWORKS["mlp"], Engine(), 3, **options)
    assert not caplog.records  # every round is recorded
    for one, other in zip(eager, replayed, strict=True):
        close(other, one, rtol=1e-3, atol=1e-4)


@on_gpu
def test_what_cannot_be_recorded_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    network = NETWORKS["data-dependent"](0)
    with caplog.at_level(logging.WARNING):
        fit(network, blobs(), PLAN, **{**OPTIONS, "device": "cuda"})
    (record,) = caplog.records
    assert "not replayed as a CUDA graph" in record.message
    assert torch.zeros(3, device="cuda").sum() == 0  # and the device is well


@on_gpu
def test_dropout_is_drawn_anew_in_every_replay() -> None:
    """Trained on noise, the same samples in one batch: only dropout makes the steps differ."""
    network = with_layer(lambda: nn.Dropout(0.5))(0).cuda()
    samples = blobs().to("cuda")
    trainer = training.Trainer([network], partial(SGD, lr=0.0))
    seen = []
    run = trainer._run
    trainer._run = lambda *given: seen.append(run(*given)) or seen[-1]  # type: ignore[method-assign]
    many = Samples(samples.x.repeat(20, 1), samples.y.repeat(20))
    trainer.train_round([many], [single_task], batch_size=38, generators=[generator()])
    losses = torch.cat(seen)[:, 0, 0]
    assert len(losses.unique()) == len(losses)


@on_gpu
@pytest.mark.parametrize("at_once", [1, 2])
def test_lenets_on_a_gpu(at_once: int) -> None:
    x = torch.randint(0, 256, (80, 1, 28, 28), generator=generator(), dtype=torch.uint8)
    samples = Samples(x, torch.arange(80) % 4)
    found = []
    for engine, stacked in ((Engine(replay=False), 1), (Engine(), at_once)):
        networks = [lenet((1, 28, 28), 4, seed=seed) for seed in range(2)]
        options = {"rounds": 2, "batch_size": 16, "device": "cuda"}
        fit_many(networks, samples, engine=engine, at_once=stacked, **options)
        found.append([weights(network) for network in networks])
    for one, other in zip(*found, strict=True):
        assert float((one - other).norm() / one.norm()) < 1e-2


@on_gpu
def test_a_wide_network_is_laid_out_for_the_gpu_and_given_back_as_it_was() -> None:
    x = torch.randint(0, 256, (64, 3, 16, 16), generator=generator(), dtype=torch.uint8)
    samples, found = Samples(x, torch.arange(64) % 4), []
    for engine in (Engine(replay=False), Engine()):
        network = resnet32(3, 4)
        options = {"rounds": 2, "batch_size": 32, "device": "cuda", "engine": engine}
        fit(network, samples, optimizer=partial(SGD, lr=1e-3), **options)
        assert all(parameter.is_contiguous() for parameter in network.parameters())
        found.append(weights(network))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-3


@on_gpu
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:TensorFloat32")  # torch's own
def test_compiled_steps_train_as_others_do() -> None:
    for at_once in (1, 3):
        for one, other in zip(
            on_cuda(NETWORKS["mlp"], Engine(replay=False), 1),
            on_cuda(NETWORKS["mlp"], Engine(compile=True), at_once),
            strict=True,
        ):
            close(other, one, rtol=1e-3, atol=1e-4)


@on_gpu
def test_bf16_learns_as_much() -> None:
    """Mixed precision is another training, and no worse a one."""
    samples = blobs((400, 200, 40))
    scores, found = {}, {}
    for bf16 in (False, True):
        network = small()
        options = {"rounds": 5, "batch_size": 40, "device": "cuda", "engine": Engine(bf16=bf16)}
        fit(network, samples, PLAN, **options)
        assert weights(network).dtype == torch.float32
        found[bf16] = weights(network)
        scores[bf16] = measure(predict(network, samples.x), samples.y).mean()["f1"]
    assert scores[True] > scores[False] - 0.03
    assert not torch.equal(found[True], found[False])


def test_bf16_is_for_gpus() -> None:
    with pytest.raises(InputError, match="bf16 needs an NVIDIA GPU, found a training on cpu"):
        trained(engine=Engine(bf16=True))


@on_gpu
def test_garbage_is_not_collected_while_a_step_is_recorded() -> None:
    """An old graph among it would be freed, and the recording would be lost."""

    class Cycle:
        def __init__(self) -> None:
            self.itself, self.graph = self, torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                torch.zeros(1, device="cuda")

    device = torch.device("cuda")
    found = torch.zeros(1, device=device)

    def step() -> None:
        assert len([[] for _ in range(100_000)]) == 100_000  # a collection would be due
        found.add_(1)

    graphs = CudaGraphs(device, lambda: "")
    graphs.aside(step)
    Cycle()  # gone at once, but for the cycle
    graphs.record(step)()
    assert found.item() == 2
