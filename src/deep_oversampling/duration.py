"""How long to train where nobody says."""

from __future__ import annotations

import math

__all__ = ["choose_rounds"]

_STEPS = 400  # that T passes over all the data, before it is reduced, should have, if they can
_ROUNDS = (3, 20)  # within these


def choose_rounds(samples: int, batch_size: int) -> int:
    """T where none is given: few samples take more rounds.

    >>> choose_rounds(900, 60), choose_rounds(50_000, 60)
    (20, 3)
    """
    least, most = _ROUNDS
    return min(most, max(least, math.ceil(_STEPS * batch_size / samples)))
