"""What a run is asked for: the options of ``dos train``, and the TOML file that keeps them."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..plan import default_tau
from ..reading import read_plain
from ..schema import is_number, is_true_or_false
from ..zoo import check_model, is_trusted

__all__ = ["Settings", "as_toml", "check_trusted", "read_settings"]

_MOST = 1 << 16  # bytes of a file; all options together are a hundredth of it
_HEAD = "# What made this run. To make it again: dos train --config FILE"


@dataclass(frozen=True)
class Settings:
    """The options of a run; those that are None follow from the data."""

    data: str  # the name of a set, or a path
    model: str = "auto"
    pretrained: bool = False  # weights that timm has
    weights: str | None = None  # a safetensors file to start from
    k: int | str | None = None  # or "auto"
    cautious: bool | None = None  # neighbours once g knows the classes; None: where k is not said
    rounds: int | None = None  # T, after as many initial ones
    patience: int | None = None  # rounds that may be no better on validation; None: all are made
    batch_size: int | None = None
    learning_rate: float = 0.01  # of SGD with momentum 0.9
    weight_decay: float = 0.0
    schedule: str = "constant"  # of the learning rate, or "cosine": it falls to 0
    size: int | None = None  # side of pictures
    validation: float = 0.2  # share held out where the data has no validation split
    augment: bool | None = None  # crop and flip
    pieces: bool | None = None  # every other picture shows a piece of a neighbour
    tau: float | None = None  # of a margin for rare classes; None: 0, or 0.5 with pieces
    baseline: bool = True  # plain training beside DOS
    seed: int = 0
    device: str | None = None
    data_dir: str | None = None  # of the official files

    def __post_init__(self) -> None:
        for name, (kinds, must) in _KINDS.items():
            value = getattr(self, name)
            if not (isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))):
                raise InputError(f"{name} must be {must}, found {value!r:.80}")
            if isinstance(value, str) and not _is_unicode(value):
                raise InputError(
                    f"{name} must be text that can be written down, found bytes that are no UTF-8 "
                    f"in {value!r:.80}; rename it"
                )
            if isinstance(value, int | float) and not (is_true_or_false(value) or is_number(value)):
                raise InputError(f"{name} must be a finite number, found one beyond 64 bits or NaN")
        if isinstance(self.k, str) and self.k != "auto":
            raise InputError(f"k must be a whole number ≥ 0 or 'auto', found {self.k!r}")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be above 0, found {self.learning_rate}")
        if not self.weight_decay >= 0:
            raise InputError(f"weight_decay must be 0 or more, found {self.weight_decay}")
        if self.schedule not in ("constant", "cosine"):
            raise InputError(f"schedule must be 'constant' or 'cosine', found {self.schedule!r}")
        if self.tau is not None and self.tau < 0:
            raise InputError(f"tau must be 0 or more, found {self.tau}")
        if self.pieces and self.k == 0:
            raise InputError(
                "k must be 1 or more with pieces, as they are of neighbours, found 0; leave one of "
                "them out"
            )
        if self.pieces and self.cautious:
            raise InputError(
                "pieces must have neighbours in every round, and cautious means in some; leave one "
                "of them out"
            )
        if not 0 < self.validation < 1:
            raise InputError(
                "validation must be a share between 0 and 1, such as 0.2, found "
                f"{self.validation:g}"
            )
        if self.model != "auto" or self.pretrained:
            check_model(self.model, pretrained=self.pretrained)
        for name, least in (
            ("k", 0),
            ("rounds", 1),
            ("patience", 1),
            ("batch_size", 1),
            ("size", 1),
        ):
            value = getattr(self, name)
            if isinstance(value, int) and value < least:
                raise InputError(f"{name} must be {least} or more, found {value}")

    @property
    def margin(self) -> float:
        """τ as it will be."""
        return default_tau(bool(self.pieces)) if self.tau is None else self.tau

    @property
    def trained_by(self) -> str:
        """The learning rate, and what goes with it."""
        falling = ", falling to 0 along a cosine" if self.schedule == "cosine" else ""
        decay = f", weight decay {self.weight_decay:g}" if self.weight_decay else ""
        return f"learning rate {self.learning_rate:g}{falling}{decay}"


def _is_unicode(text: str) -> bool:
    """A path may hold any bytes; Python has surrogates for those that are no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_NONE = type(None)
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("data", "model", "schedule"), ((str,), "text")),
    **dict.fromkeys(("weights", "device", "data_dir"), ((str, _NONE), "text")),
    **dict.fromkeys(("rounds", "patience", "batch_size", "size"), ((int, _NONE), "a whole number")),
    **dict.fromkeys(("learning_rate", "weight_decay", "validation"), ((int, float), "a number")),
    **dict.fromkeys(("pretrained", "baseline"), ((bool,), "true or false")),
    **dict.fromkeys(("augment", "cautious", "pieces"), ((bool, _NONE), "true or false")),
    "tau": ((int, float, _NONE), "a number"),
    "k": ((int, str, _NONE), "a whole number or 'auto'"),
    "seed": ((int,), "a whole number"),
}


def as_toml(settings: Settings) -> str:
    """One line an option; those that are None are left out, as TOML has no word for them."""
    lines = [_HEAD]
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value is not None:
            # what JSON writes for text, numbers and booleans is TOML as well
            text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # but for this
            lines.append(f"{field.name} = {text}")
    return "\n".join(lines) + "\n"


def read_settings(path: Path | str) -> dict[str, Any]:
    """The options of a file, by name; those it does not mention are left out."""
    path = Path(path)
    try:
        found = tomllib.loads(read_plain(path, _MOST).decode())
    except OSError as error:
        raise InputError(f"{path} must be a readable TOML file: {error}") from None
    except (ValueError, RecursionError) as error:  # tomllib's own, dates that are none, nesting
        raise InputError(f"{path} must be a TOML file: {error}") from None
    names = [field.name for field in fields(Settings)]
    for name in found:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(
                f"{path} must hold options of dos train ({', '.join(names)}), found {name!r}{hint}"
            )
    return found


def check_trusted(options: Mapping[str, Any], path: Path | str | None) -> None:
    """Refuse a model that would be run or asked a server for because a file says so."""
    model = options.get("model", "auto")
    if isinstance(model, str) and not is_trusted(model):
        raise InputError(
            f"{path} names a model of your own, {model}, and no code that a file names is run "
            f"unasked; name it again, if you trust it: --model {model}"
        )
