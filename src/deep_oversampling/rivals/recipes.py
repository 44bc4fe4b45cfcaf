"""How all methods of a comparison are trained: a recipe by its name, and what it is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch.optim.lr_scheduler import LambdaLR

from ..augmentation import Augmentation, CropAndFlip
from ..duration import choose_rounds
from ..errors import InputError
from ..stages import Schedule, cosine
from .trials import Setting

__all__ = [
    "AUGMENTATIONS",
    "RECIPES",
    "SCHEDULES",
    "Recipe",
    "filled_up",
    "rate_share",
    "recipe_of",
    "schedule_of",
]

SCHEDULES = ("constant", "cosine", "steps")
AUGMENTATIONS: dict[str, Augmentation | None] = {"none": None, "crop-flip": CropAndFlip()}


@dataclass(frozen=True)
class Recipe:
    """What a setting is filled up with, where nobody says otherwise."""

    model: str = "auto"
    rounds: int | None = None  # T; None: by the number of samples
    late_rounds: int | None = None  # to which some methods defer, of that T; None: T
    head_rounds: int = 0  # of g alone, after all others, of that T
    batch_size: int = 60
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    schedule: str = "constant"
    augment: str = "none"
    even: bool = False
    measure: str = "f1"  # what methods are compared by


_SETTINGS = (
    "model",
    "rounds",
    "batch_size",
    "learning_rate",
    "weight_decay",
    "schedule",
    "augment",
)

# "cifar-lt" is the common protocol of the long-tailed CIFAR sets, by the code of Cao et al., LDAM,
# NeurIPS 2019: 200 epochs, rates of 0.1, 0.001 and 0.00001, what is deferred begins at epoch 160;
# Algorithm 1 has as many initial rounds as others (R11), so over-sampling begins at epoch 100
RECIPES = {
    "plain": Recipe(),
    "cifar-lt": Recipe(
        model="resnet32",
        rounds=100,
        late_rounds=40,
        head_rounds=10,
        batch_size=128,
        learning_rate=0.1,
        weight_decay=2e-4,
        schedule="steps",
        augment="crop-flip",
        even=True,
        measure="recall",
    ),
}


def recipe_of(name: str) -> Recipe:
    """By its name."""
    if name not in RECIPES:
        raise InputError(f"the recipe must be one of {', '.join(RECIPES)}, found {name!r}")
    return RECIPES[name]


def filled_up(recipe: Recipe, *, size: int, **given: Any) -> Setting:
    """A setting: what is given (None: nothing), and the rest by the recipe.

    ``size`` is the number of samples, by which T is chosen where neither says it. With another T
    than the recipe's, all its rounds are in proportion.
    """
    own = {name: getattr(recipe, name) for name in _SETTINGS}
    values = own | {name: value for name, value in given.items() if value is not None}
    rounds = values["rounds"] or choose_rounds(size, values["batch_size"])
    values |= {"rounds": rounds, "even": recipe.even}
    if recipe.rounds and recipe.late_rounds:
        values["late_rounds"] = -(-recipe.late_rounds * rounds // recipe.rounds)
        if values["schedule"] == "steps":  # others have no rate for rounds after the last
            values["head_rounds"] = -(-recipe.head_rounds * rounds // recipe.rounds)
    return Setting(**values)


def schedule_of(setting: Setting) -> Schedule | None:
    """Of the learning rate, from round to round."""
    if setting.schedule == "constant":
        return None
    if setting.schedule == "cosine":
        return cosine(2 * setting.rounds)
    share = partial(
        rate_share,
        rounds=2 * setting.rounds,
        late_rounds=setting.late,
        head_rounds=setting.head_rounds,
    )
    return partial(LambdaLR, lr_lambda=share)


def rate_share(t: int, *, rounds: int, late_rounds: int, head_rounds: int = 0) -> float:
    """The share of the learning rate in round t of "steps".

    A fortieth of all rounds warms up; a hundredth is left in the late rounds, and a hundredth of
    that in the second half of these. Rounds after that train g alone, from the full rate down to 0
    along a cosine.

    >>> [rate_share(t, rounds=200, late_rounds=40) for t in (0, 4, 5, 159, 160, 180)]
    [0.2, 1.0, 1.0, 1.0, 0.01, 0.0001]
    """
    warm_up = rounds // 40
    if t < warm_up:
        return (t + 1) / warm_up
    if t >= rounds:
        return (1 + math.cos(math.pi * min((t - rounds) / max(head_rounds, 1), 1))) / 2
    if t < rounds - late_rounds:
        return 1.0
    return 0.01 if t < rounds - late_rounds / 2 else 0.0001
