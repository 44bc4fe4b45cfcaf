"""f and g: any embedder and any classifier, joined with the input normalisation they expect."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from .errors import InputError, TrainingError
from .memory import as_memory_allows
from .peers import Peers
from .views import View, chunks

__all__ = [
    "Network",
    "Normalize",
    "embed",
    "evaluating",
    "has_batch_norm",
    "in_chunks",
    "is_wide",
    "logits_of",
    "not_finite",
    "pick_device",
    "predict",
]


class Normalize(nn.Module):
    """From storage to what a network eats; part of the network, so it is saved with it.

    uint8 becomes a float in [0, 1]; floats take the network's precision; both are then
    shifted and scaled. Other integers (token ids) pass as they are.

    >>> Normalize()(torch.tensor([[0, 51, 255]], dtype=torch.uint8))
    tensor([[0.0000, 0.2000, 1.0000]])
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Tensor | float = 0.0, std: Tensor | float = 1.0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.as_tensor(std, dtype=torch.float32))

    @classmethod
    def of(cls, x: Tensor | View) -> Normalize:
        """Zero mean and unit deviation over x: per feature of (m, d), else per channel."""
        if not (x.is_floating_point() or x.dtype == torch.uint8):
            return cls()
        shape = [1] * (x.ndim - 1)
        if x.ndim in (2, 4):
            shape[0] = x.shape[1]
        axes = [a for a in range(x.ndim) if a != 1] if x.ndim in (2, 4) else list(range(x.ndim))
        count, total, squares = 0.0, torch.zeros(()), torch.zeros(())
        for part in chunks(x):  # float64 sums, without a float copy of the whole set
            part = part.cpu() if part.device.type == "mps" else part  # which has no float64
            part = (part / 255 if part.dtype == torch.uint8 else part).double()
            count += part.numel() / max(shape)
            total, squares = total + part.sum(axes), squares + part.square().sum(axes)
        mean = total / count
        std = (squares / count - mean.square()).clamp(min=0).sqrt()
        std = torch.where(std > 1e-6, std, 1.0)  # a constant feature stays constant
        return cls(mean.float().view(shape).cpu(), std.float().view(shape).cpu())

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.uint8:
            x = x.to(self.mean.dtype) / 255
        elif x.is_floating_point():
            x = x.to(self.mean.dtype)
        else:
            return x
        return (x - self.mean) / self.std


class Network(nn.Module):
    """g ∘ f: ``embedder`` maps a batch to (b, d), ``classifier`` maps that to (b, n) logits.

    >>> network = Network(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 3))
    >>> network(torch.rand(5, 4)).shape, network.embed(torch.rand(5, 4)).shape
    (torch.Size([5, 3]), torch.Size([5, 8]))
    """

    def __init__(
        self, embedder: nn.Module, classifier: nn.Module, normalize: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.classifier = classifier
        self.normalize = Normalize() if normalize is None else normalize
        self.parts = 1  # of a batch in training: f of each is computed again for its gradient

    @classmethod
    def from_model(
        cls,
        model: nn.Module,
        head: str = "fc",
        *,
        normalize: nn.Module | None = None,
        example: Tensor | None = None,  # a batch the model takes, to check the split with
    ) -> Network:
        """Split a model that exists at its last layer, ``head`` (a dotted path).

        What the model feeds to its head is the embedding. The model itself is left as it is and
        shares its parameters with the network: training one trains both. The head must be the
        last thing the model computes; what it does after the head (a softmax, say) would be done
        to the embedding instead. With an ``example`` that is checked.

        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> x = torch.rand(5, 4)
        >>> network = Network.from_model(model, head="2", example=x)
        >>> torch.equal(network(x), model(x))
        True
        """
        names = [name for name, _ in model.named_modules() if name]
        if head not in names:
            near = difflib.get_close_matches(head, names, n=3, cutoff=0.3) or names[-3:]
            raise InputError(
                f"head must be the dotted path of a module of the model, found {head!r}; "
                f"near ones: {', '.join(map(repr, near))}"
            )
        embedder, classifier = _with_identity_at(model, head), model.get_submodule(head)
        if example is not None:
            _check_split(model, nn.Sequential(embedder, classifier), example)
        return cls(embedder, classifier, normalize)

    @property
    def device(self) -> torch.device:
        return next((p.device for p in self.parameters()), torch.device("cpu"))

    def embed(self, x: Tensor) -> Tensor:  # (b, …) -> (b, d)
        """f(x), with its shape checked: a (b, c, h, w) map would broadcast into nonsense."""
        if self.parts > 1 and torch.is_grad_enabled():
            some = x.chunk(self.parts)
            return torch.cat([checkpoint(self._embed, one, use_reentrant=False) for one in some])
        return self._embed(x)

    def _embed(self, x: Tensor) -> Tensor:
        fx: Any = self.embedder(self.normalize(x))
        if not isinstance(fx, Tensor) or fx.ndim != 2 or len(fx) != len(x):
            found = tuple(fx.shape) if isinstance(fx, Tensor) else type(fx).__name__
            raise InputError(
                f"the embedder must return one vector per sample, shape ({len(x)}, d), "
                f"found {found}; end it with nn.Flatten() or pooling"
            )
        return fx

    def forward(self, x: Tensor) -> Tensor:  # (b, …) -> (b, n)
        logits: Tensor = self.classifier(self.embed(x))
        return logits


def _with_identity_at(model: nn.Module, path: str) -> nn.Module:
    """The model without the module at ``path``; only the modules along the path are copied."""
    twin = copy.copy(model)
    twin._modules = dict(model._modules)
    name, _, rest = path.partition(".")
    child = model.get_submodule(name)
    twin._modules[name] = _with_identity_at(child, rest) if rest else nn.Identity()
    return twin


def _check_split(model: nn.Module, split: nn.Module, example: Tensor) -> None:
    was_training = model.training
    model.eval()  # batch norm and dropout would differ from call to call
    try:
        with torch.no_grad():
            expected, found = model(example), split(example)
    finally:
        model.train(was_training)
    alike = expected.shape == found.shape
    if alike and not expected.is_meta:  # there are no numbers on "meta", where runs are checked
        alike = torch.allclose(expected, found, rtol=1e-3, atol=1e-5)
    if not alike:
        raise InputError(
            "head must be the last thing the model computes, found that the model goes on after "
            "it; leave that out of the model (the loss takes logits, so no softmax is needed)"
        )


def has_batch_norm(module: nn.Module) -> bool:
    """Whether what it makes of a sample depends on the others of a batch, while it is trained."""
    return any(isinstance(one, _BatchNorm) for one in module.modules())


def is_wide(network: Network) -> bool:
    """Whether its convolutions have channels enough for the tensor cores of a GPU."""
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    wide = [m for m in layers if m.in_channels % 8 == 0 and m.out_channels % 8 == 0]
    return len(wide) > len(layers) / 2


def pick_device(device: torch.device | str | None = None) -> torch.device:
    """The device asked for, else the first there is of cuda, mps and cpu."""
    if device is not None and device != "auto":
        try:
            return torch.empty(0, device=device).device  # so that it is there is known, too
        except (RuntimeError, TypeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            there = ", ".join(dict.fromkeys(("cpu", str(pick_device()))))
            raise InputError(
                f"device must be one that this machine has ({there}), found {device!r}: {reason}"
            ) from None
    # torch may be built for CUDA where there is none: most installations without a GPU are
    first = torch.accelerator.current_accelerator(check_available=True)
    return first or torch.device("cpu")


def embed(
    network: Network,
    x: Tensor | View,
    *,
    batch_size: int | None = None,
    peers: Peers | None = None,  # with which the samples are shared
) -> Tensor:  # (m, d)
    """v_i = f(x_i) for every sample: evaluation mode, no gradient, in chunks."""
    v = _gathered(network, network.embed, x, batch_size, peers)
    if not bool(v.isfinite().all()):
        raise not_finite(int((~v.isfinite().all(1)).long().argmax()))
    return v


def not_finite(sample: int) -> TrainingError:
    """An embedding that is no number."""
    return TrainingError(
        f"embeddings must be finite, found NaN or infinity for sample {sample}; "
        "lower the learning rate"
    )


def predict(
    network: Network,
    x: Tensor | View,
    *,
    batch_size: int | None = None,
    peers: Peers | None = None,  # with which the samples are shared
) -> Tensor:  # (m, n)
    """P(C|x): class probabilities of every sample: evaluation mode, no gradient, in chunks."""
    return _gathered(network, network, x, batch_size, peers).softmax(1)


def logits_of(
    network: Network, x: Tensor | View, *, batch_size: int | None = None
) -> Tensor:  # (m, n)
    """g(f(x)) of every sample, before the softmax."""
    return _gathered(network, network, x, batch_size, None)


def _gathered(
    network: Network, function: Any, x: Tensor | View, most: int | None, peers: Peers | None
) -> Tensor:
    def of(rows: slice) -> Tensor:
        return torch.cat(list(in_chunks(network, function, x, rows, most=most)))

    with evaluating(network):
        return (peers or Peers()).gathered(of, len(x))


def in_chunks(
    network: Network,
    function: Any,
    x: Tensor | View,
    rows: slice,
    *,
    most: int | None = None,
    change: Callable[[Tensor, slice], Tensor] | None = None,  # of rows of x, before the function
) -> Iterator[Tensor]:
    """What a function of a batch makes of some of x, without a gradient, part by part."""
    size = most or (256 if network.device.type == "cpu" else 8192)  # of a cache, of a GPU
    some = x.select(rows) if isinstance(x, View) else x[rows]
    at = rows.start or 0
    for part in chunks(some, size):
        with torch.no_grad():  # not around the loop: whoever takes the parts has gradients
            part = part.to(network.device)
            part = change(part, slice(at, at + len(part))) if change else part
            made = as_memory_allows(function, part)
        at += len(part)
        yield made


@contextmanager
def evaluating(network: Network) -> Iterator[None]:
    """In evaluation mode inside, and as it was afterwards."""
    was_training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(was_training)
