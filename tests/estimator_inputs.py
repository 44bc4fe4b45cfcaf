"""What the tests of DOSClassifier train on, and the classifier they train."""

from functools import partial

import numpy as np
from sklearn.datasets import load_digits, make_blobs

from deep_oversampling import DOSClassifier

fast = partial(DOSClassifier, rounds=2, learning_rate=0.05, device="cpu")


def vectors() -> tuple[np.ndarray, np.ndarray]:
    """(70, 4) and labels: 30 of "cat", 30 of "dog" and 10 of "eel"."""
    X, y = make_blobs([30, 30, 10], n_features=4, cluster_std=2.0, random_state=0)
    return X, np.array(["cat", "dog", "eel"])[y]


def images() -> tuple[np.ndarray, np.ndarray]:
    """(60, 8, 8) uint8 and labels."""
    digits = load_digits(n_class=3)
    return (15 * digits.images[:60]).astype(np.uint8), digits.target[:60]
