"""What scikit-learn's users bring, as samples take it."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .views import View

__all__ = ["as_array", "stays_stored", "with_channels"]


def stays_stored(X: Any) -> TypeGuard[View]:
    """A view that needs no conversion is read batch by batch; others become arrays."""
    kinds = ((4, torch.uint8), (4, torch.float32), (2, torch.float32))
    return isinstance(X, View) and (X.ndim, X.dtype) in kinds


def as_array(X: Any) -> Any:
    """A tensor as the array it is: scikit-learn would turn its bytes into floats."""
    if isinstance(X, Tensor):
        return X.numpy(force=True)
    return np.asarray(X) if isinstance(X, View) else X


def with_channels(array: NDArray[Any]) -> NDArray[Any]:
    """Images with their channel axis; uint8 is for images only, features are just numbers."""
    if array.ndim == 3:
        array = array[:, np.newaxis]  # (m, h, w) -> (m, 1, h, w)
    return array.astype(np.float32, copy=False) if array.ndim == 2 else array
