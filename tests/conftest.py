"""One thread, known draws for networks made without a seed, the same hypothesis examples."""

import signal
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import settings

import estimator_inputs

torch.set_num_threads(1)

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _known_draws() -> None:
    torch.manual_seed(0)


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sums on a GPU in the same order every time."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def ctrl_c_is_heard() -> Iterator[None]:
    """What runs in the background may have been told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def vectors() -> tuple[np.ndarray, np.ndarray]:
    return estimator_inputs.vectors()


@pytest.fixture
def images() -> tuple[np.ndarray, np.ndarray]:
    return estimator_inputs.images()
