"""Deep Over-sampling (DOS): train any neural classifier on imbalanced data."""

from .algorithm import fit
from .errors import DOSError, InputError, TrainingError
from .history import History
from .metrics import Report, measure
from .models import lenet, mlp, resnet32
from .network import Network, Normalize, embed, predict
from .plan import Plan
from .samples import Samples

__all__ = [
    "DOSError",
    "History",
    "InputError",
    "Network",
    "Normalize",
    "Plan",
    "Report",
    "Samples",
    "TrainingError",
    "embed",
    "fit",
    "lenet",
    "measure",
    "mlp",
    "predict",
    "resnet32",
]
