"""Numbers that stay true: small trainings give what they always gave; golden.py makes them."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import golden
from deep_oversampling import Samples, objectives, oversampling
from deep_oversampling.losses import classifier_loss, proximity
from deep_oversampling.moments import Moments

# far above what processors differ by (6e-8 was seen), far below what a change of method makes
CLOSE = {"rtol": 1e-5, "atol": 1e-7}
KEPT: dict[str, dict[str, Any]] = json.loads(golden.FILE.read_text())


@cache
def data() -> tuple[Samples, Samples]:
    return golden.data()


def differing(kind: str) -> list[str]:
    """The names of what is not as it was."""
    found = golden.trained(kind, *data())
    assert found.keys() == KEPT[kind].keys()
    return [name for name in found if not np.allclose(found[name], KEPT[kind][name], **CLOSE)]


def test_every_kind_is_kept() -> None:
    assert KEPT.keys() == golden.KINDS.keys()


@pytest.mark.parametrize("kind", golden.KINDS)
def test_trainings_give_what_they_always_gave(kind: str) -> None:
    assert differing(kind) == []


def _without_itself(errors: Tensor, mask: Tensor) -> Tensor:
    near = errors.detach().neg().exp() * mask
    return near / near.sum(1, keepdim=True).clamp(min=1e-12)


def _even(mask: Tensor, generator: torch.Generator, **_: Any) -> Tensor:
    return mask / mask.sum(1, keepdim=True)


VARIANCE = Moments.variance


def m_less_one(of: Moments, dtype: torch.dtype) -> Tensor:
    m = of.count.sum()
    return VARIANCE(of, dtype) * m / (m - 1)


CHANGES: dict[str, tuple[Any, str, Callable[..., Tensor]]] = {
    "ρ without x itself": (objectives, "proximity", _without_itself),
    "ρ with a gradient scale": (objectives, "proximity", lambda e, m: 0.99 * proximity(e, m)),
    "ℓ_g averaged": (objectives, "classifier_loss", lambda o, r, e: classifier_loss(o, r, e) / 2),
    "ℓ_f not summed": (objectives, "embedding_loss", lambda errors: errors.mean(1)),
    "weights not drawn": (oversampling, "sample_simplex", _even),
    "another variance": (Moments, "variance", m_less_one),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_algorithm_cannot_pass(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, name, other = CHANGES[change]
    monkeypatch.setattr(room, name, other)
    assert differing("DOS")
    assert "weights" in differing("DOS, pull as it is")  # no limit levels it
