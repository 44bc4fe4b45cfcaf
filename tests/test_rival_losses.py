"""The rivals' losses: their publications' formulas, and what they reduce to."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD

import rival_loops as loops
from deep_oversampling import InputError, Network, Samples
from deep_oversampling.losses import Loss, entropy
from deep_oversampling.objectives import Objective, single_task
from deep_oversampling.rivals import (
    adjusted_afterwards,
    effective_number,
    focal,
    inverse_frequency,
    ldam,
    logit_adjusted,
    weighted,
    with_cosine_head,
)
from deep_oversampling.rivals.ldam import SCALE, CosineHead
from toy import generator, small, train_round, weights

close = torch.testing.assert_close
N = 3

COUNTS = {
    "imbalanced": (300, 40, 7),
    "balanced": (50, 50, 50),
    "a class with one sample": (90, 9, 1),
}
LOGITS = {"typical": 2.0, "small": 1e-3, "large": 40.0}  # their deviation


@pytest.fixture(params=COUNTS)
def counts(request: pytest.FixtureRequest) -> Tensor:
    return torch.tensor(COUNTS[request.param])


@pytest.fixture(params=LOGITS)
def logits(request: pytest.FixtureRequest) -> Tensor:
    return LOGITS[request.param] * torch.randn(12, N, generator=generator()).double()


Y = torch.arange(12) % N


def in_loop(logits: Tensor, one) -> Tensor:
    rows = zip(logits.tolist(), Y.tolist(), strict=True)
    return torch.tensor([one(row, label) for row, label in rows], dtype=torch.float64)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0, 5.0])
def test_focal_is_its_formula(logits: Tensor, gamma: float) -> None:
    expected = in_loop(logits, lambda row, label: loops.focal(row, label, gamma))
    close(focal(gamma)(logits, Y), expected, rtol=1e-6, atol=1e-12)


def test_focal_without_gamma_is_the_entropy(logits: Tensor) -> None:
    assert torch.equal(focal(0.0)(logits, Y), entropy(logits, Y))


def test_entropy_is_its_formula(logits: Tensor) -> None:
    close(entropy(logits, Y), in_loop(logits, loops.entropy))


@pytest.mark.parametrize("tau", [0.5, 1.0, 3.0])
def test_logit_adjustment_is_its_formula(logits: Tensor, counts: Tensor, tau: float) -> None:
    each = counts.tolist()
    expected = in_loop(logits, lambda row, label: loops.logit_adjusted(row, label, each, tau))
    close(logit_adjusted(counts, tau)(logits, Y), expected)


def test_logit_adjustment_reduces_to_the_entropy(logits: Tensor, counts: Tensor) -> None:
    close(logit_adjusted(counts, 0.0)(logits, Y), entropy(logits, Y))
    close(logit_adjusted(torch.full((N,), 7))(logits, Y), entropy(logits, Y))


@pytest.mark.parametrize("tau", [0.5, 1.0, 1.5])
def test_what_training_has_too_much_of_is_taken_back_afterwards(
    logits: Tensor, counts: Tensor, tau: float
) -> None:
    """The loss sees P(C|x) π^τ, scaled to 1; divided by π^τ it is P(C|x) again."""
    with_margin = (logits + tau * (counts / counts.sum()).log()).softmax(1)
    ell = -with_margin[torch.arange(12), Y].log()
    close(logit_adjusted(counts, tau)(logits, Y), ell, check_dtype=False, rtol=1e-4, atol=1e-4)
    close(adjusted_afterwards(with_margin, counts, tau), logits.softmax(1), rtol=1e-4, atol=1e-6)


def test_adjusting_afterwards_adds_up_and_can_be_left(counts: Tensor) -> None:
    p = torch.randn(12, N, generator=generator()).softmax(1)
    close(adjusted_afterwards(p, counts, 0.0), p)
    twice = adjusted_afterwards(adjusted_afterwards(p, counts, 0.25), counts, 0.5)
    close(twice, adjusted_afterwards(p, counts, 0.75))
    close(adjusted_afterwards(p, torch.full((N,), 7)), p)
    close(
        adjusted_afterwards(p, torch.tensor([9, 3, 0])),
        adjusted_afterwards(p, torch.tensor([9, 3, 1])),
    )


def test_what_is_no_probability_is_not_adjusted(counts: Tensor) -> None:
    p = torch.randn(12, N, generator=generator()).softmax(1)
    misfits = {
        r"one number per class, found shapes \(12, 3\) and \(2,\)": (p, counts[:2], 1.0),
        r"found shapes \(3,\) and \(3,\)": (p[0], counts, 1.0),
        "numbers from -.* to ": (p.log(), counts, 1.0),
        "to 2 and tau 1": (torch.tensor([[2.0, 0.0, 0.5]]), counts, 1.0),
        "and tau nan": (p, counts, float("nan")),
    }
    for message, given in misfits.items():
        with pytest.raises(InputError, match=message):
            adjusted_afterwards(*given)


def test_counts_may_be_a_list(logits: Tensor, counts: Tensor) -> None:
    each: Any = counts.tolist()
    for make in (ldam, logit_adjusted):
        close(make(each)(logits, Y), make(counts)(logits, Y))
    p: Any = logits.softmax(1)
    close(adjusted_afterwards(p.numpy(), each), adjusted_afterwards(p, counts))


@pytest.mark.parametrize(("largest", "scale"), [(0.5, 30.0), (1.0, 1.0), (0.1, 64.0)])
def test_ldam_is_its_formula(logits: Tensor, counts: Tensor, largest: float, scale: float) -> None:
    each = counts.tolist()
    expected = in_loop(logits, lambda row, label: loops.ldam(row, label, each, largest, scale))
    close(ldam(counts, largest=largest, scale=scale)(logits, Y), expected)


def test_ldam_without_margins_is_the_entropy(logits: Tensor, counts: Tensor) -> None:
    assert torch.equal(ldam(counts, largest=0.0)(logits, Y), entropy(logits, Y))


def test_ldam_asks_more_of_rarer_classes() -> None:
    still = torch.zeros(N, N)
    ell = ldam(torch.tensor([300, 40, 7]))(still, torch.arange(N))
    assert (ell.diff() > 0).all()


def one_step(objective: Objective, x: Tensor, y: Tensor, batch_size: int) -> Tensor:
    """The weights of a linear classifier after one round of one step."""
    network = Network(nn.Identity(), nn.Linear(4, N))
    with torch.no_grad():
        for p in network.parameters():
            p.copy_(torch.linspace(-1, 1, p.numel()).view_as(p))
    train_round(network, Samples(x, y), objective, partial(SGD, lr=0.1), batch_size=batch_size)
    return torch.cat([p.detach().flatten() for p in network.parameters()])


@pytest.mark.parametrize("batch_size", [12, 13, 20, 24], ids=lambda size: f"batch of {size}")
@pytest.mark.parametrize("loss", [entropy, focal()], ids=["entropy", "focal"])
def test_weighted_is_the_weighted_mean_whatever_pads_the_batch(batch_size: int, loss: Loss) -> None:
    """For the entropy, the step is that of torch's own weighted cross-entropy."""
    x, each = torch.randn(12, 4, generator=generator()), torch.tensor([0.25, 1.0, 8.0])

    def by_hand(network: Network, batch: Samples) -> tuple[Tensor, Tensor]:
        ell = each[Y] * loss(network(x), Y)  # all twelve, once
        mean = ell.sum() / each[Y].sum()
        return mean.expand(len(batch)), torch.zeros(len(batch))

    close(one_step(weighted(each, loss), x, Y, batch_size), one_step(by_hand, x, Y, 12))
    if loss is entropy:
        network = Network(nn.Identity(), nn.Linear(4, N))
        ell, _, weights = weighted(each)(network, Samples(x, Y))
        theirs = cross_entropy(network(x), Y, weight=each)
        close((ell * weights).sum() / weights.sum(), theirs)


def test_equal_weights_are_plain_training() -> None:
    x = torch.randn(12, 4, generator=generator())
    close(one_step(weighted(torch.ones(N)), x, Y, 12), one_step(single_task, x, Y, 12))


def test_inverse_frequency_is_its_formula(counts: Tensor) -> None:
    close(inverse_frequency(counts), torch.tensor(loops.inverse_frequency(counts.tolist())))


@pytest.mark.parametrize("beta", [0.0, 0.9, 0.9999])
def test_effective_number_is_its_series(counts: Tensor, beta: float) -> None:
    close(
        effective_number(counts, beta), torch.tensor(loops.effective_number(counts.tolist(), beta))
    )


def test_effective_number_lies_between_equal_weights_and_inverse_frequency(counts: Tensor) -> None:
    close(effective_number(counts, 0.0), torch.ones(N))
    close(effective_number(counts, 1 - 1e-8), inverse_frequency(counts), rtol=1e-5, atol=0)
    ratio = [
        float(effective_number(counts, beta)[-1] / effective_number(counts, beta)[0])
        for beta in (0.0, 0.9, 0.99, 0.9999)
    ]
    assert ratio == sorted(ratio)


@pytest.mark.parametrize("each", [inverse_frequency, effective_number])
def test_weights_of_a_training_set_have_the_mean_one(counts: Tensor, each) -> None:
    of_samples = each(counts)[torch.arange(N).repeat_interleave(counts)]
    close(of_samples.mean(), torch.tensor(1.0))


@pytest.mark.parametrize("each", [inverse_frequency, effective_number])
def test_a_class_without_samples_changes_no_other_weight(each) -> None:
    found = each(torch.tensor([30, 10, 0]))
    close(found[:2], each(torch.tensor([30, 10])))
    assert found.isfinite().all()


LOSSES = {
    "entropy": lambda counts: entropy,
    "focal": lambda counts: focal(),
    "focal, γ = 1/2": lambda counts: focal(0.5),
    "logit adjustment": logit_adjusted,
    "ldam": ldam,
}


@pytest.fixture(params=LOSSES)
def loss(request: pytest.FixtureRequest, counts: Tensor) -> Loss:
    return LOSSES[request.param](counts)


@pytest.mark.parametrize("size", [0.0, 1.0, 100.0, 1e4], ids=lambda size: f"logits of {size}")
def test_values_and_gradients_are_finite(loss: Loss, size: float) -> None:
    """Sure of the right class and sure of a wrong one."""
    logits = (size * torch.eye(N)).repeat(N, 1).requires_grad_()
    ell = loss(logits, torch.arange(N).repeat_interleave(N))
    assert ell.shape == (N * N,)
    assert (ell >= 0).all()
    (gradient,) = torch.autograd.grad(ell.sum(), logits)
    assert ell.isfinite().all()
    assert gradient.isfinite().all()


def test_gradients_push_the_own_logit_up_and_the_others_down(loss: Loss) -> None:
    logits = torch.randn(12, N, generator=generator()).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(logits, Y).sum(), logits)
    own = torch.nn.functional.one_hot(Y, N).bool()
    assert (gradient[own] < 0).all()
    assert (gradient[~own] > 0).all()
    close(gradient.sum(1), torch.zeros(12), atol=1e-4, rtol=0)  # softmax: only differences count


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_loss_keeps_the_precision_of_the_logits(loss: Loss, dtype: torch.dtype) -> None:
    logits = torch.randn(12, N, generator=generator()).to(dtype)
    ell = loss(logits, Y)
    assert ell.dtype == dtype
    close(ell.double(), loss(logits.double(), Y), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_a_row_does_not_depend_on_the_others(name: str) -> None:
    logits, loss = torch.randn(12, N, generator=generator()), LOSSES[name](torch.tensor([9, 2, 1]))
    rows = [loss(logits[i : i + 1], Y[i : i + 1]) for i in range(12)]
    close(loss(logits, Y), torch.cat(rows))


@pytest.mark.parametrize("name", list(LOSSES)[1:])
def test_every_loss_differs_from_the_entropy(name: str) -> None:
    logits = torch.randn(12, N, generator=generator())
    ours = LOSSES[name](torch.tensor(COUNTS["imbalanced"]))(logits, Y)
    assert not torch.allclose(ours, entropy(logits, Y), rtol=1e-2)


# the cosine head


def test_cosine_head_is_its_formula() -> None:
    head = CosineHead(nn.Linear(4, N), scale=7.0)
    v = torch.randn(6, 4, generator=generator())
    expected = [loops.cosines(row, head.weight.tolist(), 7.0) for row in v.tolist()]
    close(head(v), torch.tensor(expected))
    close(head(100 * v), head(v))
    assert (head(v).abs() <= 7.0 + 1e-4).all()
    assert torch.equal(CosineHead(nn.Linear(4, N))(torch.zeros(1, 4)), torch.zeros(1, N))


def one_layer() -> Network:
    """As in a LeNet."""
    return Network(nn.Linear(4, 6), nn.Sequential(nn.Linear(6, N)))


def sequential() -> Network:
    return Network(nn.Linear(4, 6), nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, N)))


@pytest.mark.parametrize("make", [small, one_layer, sequential])
def test_only_the_last_layer_becomes_one_of_cosines(make) -> None:
    network = make()
    before = copy.deepcopy(network)
    other = with_cosine_head(network)
    x = torch.randn(6, 4, generator=generator())
    assert torch.equal(weights(network), weights(before))  # the original is left alone
    assert torch.equal(network(x), before(x))
    assert torch.equal(weights(other.embedder), weights(network.embedder))
    g = network.classifier
    *earlier, first = g if isinstance(g, nn.Sequential) else [g]
    *kept, last = other.classifier
    for ours, theirs in zip(kept, earlier, strict=True):
        assert all(map(torch.equal, ours.parameters(), theirs.parameters()))
    assert isinstance(last, CosineHead)
    close(last.weight, first.weight / first.weight.norm(dim=1, keepdim=True))
    assert (other(x).abs() <= SCALE + 1e-4).all()


@pytest.mark.parametrize("make", [small, one_layer])
def test_f_ends_in_directions_where_cosines_are_all_of_g(make) -> None:
    network, x = make(), torch.randn(6, 4, generator=generator())
    v = with_cosine_head(network).embed(x)
    close(v, network.embed(x) / network.embed(x).norm(dim=1, keepdim=True))


def test_f_is_left_where_more_layers_come_before_the_cosines() -> None:
    network, x = sequential(), torch.randn(6, 4, generator=generator())
    assert torch.equal(with_cosine_head(network).embed(x), network.embed(x))


def test_training_the_other_leaves_the_original_alone() -> None:
    network = small()
    other = with_cosine_head(network)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.fill_(1.0)
    assert torch.equal(weights(network), weights(small()))


@pytest.mark.parametrize(
    "classifier",
    [
        nn.Identity(),
        nn.Sequential(),
        nn.Sequential(nn.Linear(5, N), nn.Softmax(1)),
        nn.Conv1d(5, N, 1),
    ],
    ids=["nothing", "an empty sequence", "a softmax at the end", "a convolution"],
)
def test_what_has_no_linear_end_is_refused(classifier: nn.Module) -> None:
    found = type(classifier).__name__
    with pytest.raises(InputError, match=f"ends in a linear layer.* found {found}; leave"):
        with_cosine_head(Network(nn.Linear(4, 5), classifier))
