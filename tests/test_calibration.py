"""One temperature: the optimum it is said to be, on logits of any scale."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from deep_oversampling import InputError
from deep_oversampling.calibration import temperature


def drawn(m: int = 4000, n: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits, and labels drawn by the very probabilities they state."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(m, n, generator=generator)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)


def test_it_is_the_optimum_of_the_likelihood() -> None:
    logits, labels = drawn(200)
    found = temperature(3 * logits, labels)
    near = [found * times for times in (0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 2.0)]
    losses = [float(cross_entropy(3 * logits.double() / t, labels)) for t in near]
    assert min(losses) == losses[3]


def test_calibrated_logits_keep_their_temperature() -> None:
    assert temperature(*drawn()) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("c", [1e-3, 0.5, 7.0, 1e3])
def test_it_follows_the_scale_of_the_logits(c: float) -> None:
    logits, labels = drawn(300)
    assert temperature(c * logits, labels) == pytest.approx(c * temperature(logits, labels), 1e-4)


def test_a_shift_of_a_row_changes_nothing() -> None:
    logits, labels = drawn(300)
    shifted = logits + torch.arange(300).unsqueeze(1)
    assert temperature(shifted, labels) == pytest.approx(temperature(logits, labels), 1e-4)


@pytest.mark.parametrize("times", [1, -1], ids=["all right", "all wrong"])
def test_where_there_is_no_optimum_it_is_one(times: int) -> None:
    logits, _ = drawn(50)
    assert temperature(times * logits, logits.argmax(1)) == 1.0


def test_equal_logits_have_none() -> None:
    assert temperature(torch.zeros(5, 3), torch.tensor([0, 1, 2, 0, 1])) == 1.0


def test_shapes_must_agree() -> None:
    with pytest.raises(InputError, match=r"found shapes \(3, 2\) and \(2,\)"):
        temperature(torch.zeros(3, 2), torch.tensor([0, 1]))
