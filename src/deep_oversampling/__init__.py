"""Deep Over-sampling (DOS): train any neural classifier on imbalanced data."""

from .augmentation import CropAndFlip, InTurn, MirrorAndTurn, Turn
from .checkpoint import load_weights, save_weights
from .engine import Engine
from .errors import DOSError, InputError, TrainingError
from .estimator import DOSClassifier
from .export import to_onnx
from .fitting import fit, fit_many
from .history import History
from .metrics import Report, measure
from .models import lenet, mlp, resnet32
from .network import Network, Normalize, embed, predict
from .plan import Plan
from .probes import knn_probe, logistic_probe
from .residual import resnet18
from .samples import Samples
from .views import View

__version__ = "0.1.0"

__all__ = [
    "CropAndFlip",
    "DOSClassifier",
    "DOSError",
    "Engine",
    "History",
    "InTurn",
    "InputError",
    "MirrorAndTurn",
    "Network",
    "Normalize",
    "Plan",
    "Report",
    "Samples",
    "TrainingError",
    "Turn",
    "View",
    "embed",
    "fit",
    "fit_many",
    "knn_probe",
    "lenet",
    "load_weights",
    "logistic_probe",
    "measure",
    "mlp",
    "predict",
    "resnet18",
    "resnet32",
    "save_weights",
    "to_onnx",
]
