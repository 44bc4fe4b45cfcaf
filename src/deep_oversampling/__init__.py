"""Deep Over-sampling (DOS): train any neural classifier on imbalanced data."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# What is imported when it is first asked for: torch and scikit-learn take seconds, and the command
# line need not wait for them to say how it is used.
_NAMES = {
    "augmentation": "CropAndFlip InTurn MirrorAndTurn Turn",
    "callbacks": "JSONLines TensorBoard several",
    "checkpoint": "load_weights save_weights",
    "engine": "Engine",
    "errors": "DOSError InputError PeerLost Stopped TrainingError",
    "estimator": "DOSClassifier",
    "export": "to_onnx",
    "fitting": "fit fit_many",
    "history": "History",
    "metrics": "Report measure",
    "models": "lenet mlp resnet32",
    "network": "Network Normalize embed predict",
    "objectives": "dos_loss",
    "oversampling": "MicroClusters oversample",
    "peers": "Peers join_peers",
    "pieces": "with_pieces",
    "plan": "Plan",
    "probes": "knn_probe logistic_probe",
    "residual": "resnet18",
    "resuming": "Checkpoints",
    "samples": "Samples",
    "stopping": "EarlyStopping",
    "views": "View",
}
_PLACES = {name: place for place, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    globals()[name] = value  # so that it is asked for once
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
