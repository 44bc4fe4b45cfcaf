"""A trained network for other programs: ONNX, torch.export, safetensors.

What is exported takes samples as they are stored (uint8 or float): the normalisation is inside.
"""

from __future__ import annotations

import json
import logging
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from .errors import InputError
from .network import Network

__all__ = ["to_onnx", "to_safetensors", "to_torch_export"]

_INPUT, _OUTPUTS = "x", ["logits", "probabilities", "embeddings"]


class _Shipped(nn.Module):
    """f, g and calibrated probabilities in one pass, without the checks that training wants."""

    def __init__(self, network: Network, temperature: float) -> None:
        super().__init__()
        self.network, self.temperature = network, temperature

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        embeddings = self.network.embedder(self.network.normalize(x))
        logits = self.network.classifier(embeddings)
        return logits, (logits / self.temperature).softmax(1), embeddings


def to_onnx(
    network: Network,
    path: Path | str,
    example: Tensor,  # (b, …)  samples as they are stored; b may differ later
    *,
    temperature: float = 1.0,
    classes: Sequence[str] = (),
) -> None:
    """Write a graph x -> logits, probabilities, embeddings; class names are in its metadata."""
    missing = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"an ONNX file needs {' and '.join(missing)}, found that it is not installed; "
            "pip install 'deep-oversampling[onnx]'"
        )

    def write(part: Path) -> None:
        program = torch.onnx.export(
            _Shipped(network, temperature),
            (_two(example),),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            input_names=[_INPUT],
            output_names=_OUTPUTS,
            verbose=False,
        )
        if program is None:
            raise RuntimeError("the exporter returned nothing")
        program.model.metadata_props["classes"] = json.dumps(list(classes))
        program.model.metadata_props["temperature"] = repr(temperature)
        program.save(part, external_data=False)

    _written(network, Path(path), write, "ONNX")


def to_torch_export(
    network: Network,
    path: Path | str,
    example: Tensor,
    *,
    temperature: float = 1.0,
    classes: Sequence[str] = (),
) -> None:
    """Write a program for ``torch.export.load``, which gives what `to_onnx` gives."""

    def write(part: Path) -> None:
        program = torch.export.export(
            _Shipped(network, temperature),
            (_two(example),),
            dynamic_shapes=({0: torch.export.Dim("batch")},),
        )
        about = {"classes.json": json.dumps(list(classes)), "temperature.json": repr(temperature)}
        with part.open("wb") as file:
            torch.export.save(program, file, extra_files=about)

    _written(network, Path(path), write, "torch.export")


def to_safetensors(
    network: Network, path: Path | str, *, temperature: float = 1.0, classes: Sequence[str] = ()
) -> None:
    """Write the weights, with class names and temperature in the file's metadata."""
    weights = {name: t.detach().cpu().clone() for name, t in network.state_dict().items()}
    about = {"classes": json.dumps(list(classes)), "temperature": repr(temperature)}
    _written(
        network, Path(path), lambda part: part.write_bytes(save(weights, about)), "safetensors"
    )


def _two(example: Tensor) -> Tensor:
    """A batch of one would be taken for the only size there is."""
    return example if len(example) > 1 else example.repeat(2, *[1] * (example.ndim - 1))


def _written(network: Network, path: Path, write: Callable[[Path], Any], what: str) -> None:
    """The file whole or not at all, from a network on the CPU in evaluation mode."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    was_training, device = network.training, network.device
    try:
        with _quiet(), torch.no_grad():
            network.cpu().eval()
            write(part)
        part.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} must be a file in a folder that can be written to: {error}; choose another"
        ) from None
    except Exception as error:  # exporters raise all kinds for a layer they do not know
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(
            f"the model must be one that {what} can hold, found that it cannot be exported: "
            f"{reason}"
        ) from error
    finally:
        part.unlink(missing_ok=True)
        network.to(device).train(was_training)


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters tell of their own insides, in warnings, in logs and on standard output."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
