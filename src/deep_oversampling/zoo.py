"""A network by its name, as the command line and a run folder write it."""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .errors import InputError
from .models import lenet, mlp, resnet32
from .network import Network
from .residual import resnet18
from .seeding import isolated, streams

__all__ = ["MODELS", "check_model", "choose_model", "is_own_code", "is_trusted", "make_network"]

_OURS = ("lenet", "mlp", "resnet18", "resnet32")
MODELS = (*_OURS, "timm:NAME", "FILE.py:FACTORY")
_LARGE = 64  # pixels, from which on a LeNet sees too little at a time


def choose_model(shape: tuple[int, ...]) -> str:
    """An MLP for vectors, a LeNet for small pictures, a ResNet-18 for large ones.

    >>> choose_model((30,)), choose_model((1, 28, 28)), choose_model((3, 224, 224))
    ('mlp', 'lenet', 'resnet18')
    """
    if len(shape) != 3 or min(shape[1:]) < 4:  # a LeNet's two poolings must leave a pixel
        return "mlp"
    return "lenet" if min(shape[1:]) < _LARGE else "resnet18"


def is_own_code(model: str) -> bool:
    """Whether the name says FILE.py:FACTORY, so that making the network runs that file."""
    return model.rpartition(":")[0].endswith(".py")


def is_trusted(model: str) -> bool:
    """Whether making the network neither runs a file nor asks a server: timm:hf-hub:… does.

    >>> is_trusted("timm:resnet18"), is_trusted("timm:hf-hub:a/b"), is_trusted("mine.py:make")
    (True, False, False)
    """
    return not is_own_code(model) and ":" not in model.removeprefix("timm:")


def check_model(model: str, *, pretrained: bool = False) -> None:
    """Refuse a name that no network can be made by; nothing is made, run or loaded for it."""
    if pretrained and not model.startswith("timm:"):
        raise InputError(
            f"--pretrained is for models of timm, found {model!r}; choose timm:NAME, or load "
            "weights from a file (--weights)"
        )
    if model not in _OURS and not model.startswith("timm:") and not is_own_code(model):
        near = difflib.get_close_matches(model.lower(), _OURS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(
            f"the model must be auto or one of {', '.join(MODELS)}, found {model!r}{hint}"
        )


def make_network(
    model: str,
    shape: tuple[int, ...],  # of a sample
    n: int,
    *,
    normalize: nn.Module | None = None,
    seed: int = 0,
    pretrained: bool = False,
) -> Network:
    """A new network for samples of ``shape`` and n classes; ``pretrained`` is for timm's."""
    check_model(model, pretrained=pretrained)
    if model == "mlp":
        return mlp(torch.Size(shape).numel(), n, normalize=normalize, seed=seed)
    own = is_own_code(model)
    if not own and len(shape) != 3:
        raise InputError(
            f"{model} needs images, shape (c, h, w), found samples of {shape}; choose auto or mlp"
        )
    if model == "lenet":
        return lenet((shape[0], shape[1], shape[2]), n, normalize=normalize, seed=seed)
    if model == "resnet18":
        return resnet18(shape[0], n, normalize=normalize, seed=seed)
    if model == "resnet32":
        return resnet32(shape[0], n, normalize=normalize, seed=seed)
    with isolated(streams(seed)("network")):
        if own:
            return _from_file(model, shape, n, normalize)
        return _from_timm(model.removeprefix("timm:"), shape, n, normalize, pretrained)


def _from_timm(
    name: str, shape: tuple[int, ...], n: int, normalize: nn.Module | None, pretrained: bool
) -> Network:
    try:
        import timm
    except ImportError as error:
        raise InputError(
            f"timm:{name} needs timm, found that it cannot be imported ({error}); "
            "pip install 'deep-oversampling[timm]'"
        ) from None
    options: dict[str, Any] = {"num_classes": n, "in_chans": shape[0], "pretrained": pretrained}
    try:
        model: Any = timm.create_model(name, **options)
        if model.default_cfg.get("fixed_input_size"):  # transformers are made for one size
            model = timm.create_model(name, **options, img_size=tuple(shape[1:]))
    except Exception as error:  # an unknown name, a download that fails: timm raises all kinds
        raise InputError(
            f"timm must be able to make {name!r} for pictures of {shape} and {n} classes, found: "
            f"{_first_line(error)}; timm.list_models() names what there is"
        ) from None
    head = model.default_cfg.get("classifier")
    if not isinstance(head, str):
        raise InputError(
            f"a model of timm must end in one classifier, found {head!r} in {name}; choose another"
        )
    return Network.from_model(model, head, normalize=normalize, example=torch.zeros(2, *shape))


def _from_file(model: str, shape: tuple[int, ...], n: int, normalize: nn.Module | None) -> Network:
    """What ``factory(shape, n)`` of the user's own file returns. The file is run."""
    file, _, name = model.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise InputError(f"the model must be in a Python file, FILE.py:FACTORY, found no {file}")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        factory = getattr(module, name, None)
        made = factory(shape, n) if callable(factory) else None
    except Exception as error:
        raise InputError(
            f"{file} must make a network with {name}(shape, n), found that it fails for "
            f"{name}({shape}, {n}): {type(error).__name__}: {_first_line(error)}"
        ) from error
    if isinstance(made, Network):
        return made
    if isinstance(made, nn.Module):
        return Network.from_model(made, "fc", normalize=normalize, example=torch.zeros(2, *shape))
    found = f"it returned {type(made).__name__}" if callable(factory) else "no such function"
    raise InputError(
        f"{name} of {file} must be a function (shape, n) that returns a Network, or a module "
        f"whose last layer is called fc, found {found}"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
