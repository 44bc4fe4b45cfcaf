"""The digits that come with scikit-learn: real data where nothing can be downloaded."""

from __future__ import annotations

import numpy as np

from ...samples import Samples
from ..splits import Splits

__all__ = ["load_digits"]


def load_digits() -> Splits:
    """1,797 images (m, 1, 8, 8), their 17 grey levels as 0, 15, … 240; there is no test set."""
    from sklearn import datasets

    digits = datasets.load_digits()
    x = (digits.images * 15).astype(np.uint8)
    return Splits("Digits", Samples(x[:, None], digits.target, list("0123456789")))
