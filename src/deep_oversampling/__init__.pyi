"""What the package offers, for type checkers: the names that `__init__.py` has at run time."""

from .augmentation import CropAndFlip, InTurn, MirrorAndTurn, Turn
from .callbacks import JSONLines, TensorBoard, several
from .checkpoint import load_weights, save_weights
from .engine import Engine
from .errors import DOSError, InputError, PeerLost, Stopped, TrainingError
from .estimator import DOSClassifier
from .export import to_onnx
from .fitting import fit, fit_many
from .history import History
from .metrics import Report, measure
from .models import lenet, mlp, resnet32
from .network import Network, Normalize, embed, predict
from .objectives import dos_loss
from .oversampling import MicroClusters, oversample
from .peers import Peers, join_peers
from .pieces import with_pieces
from .plan import Plan
from .probes import knn_probe, logistic_probe
from .residual import resnet18
from .resuming import Checkpoints
from .samples import Samples
from .stopping import EarlyStopping
from .views import View

__version__: str

__all__ = [
    "Checkpoints",
    "CropAndFlip",
    "DOSClassifier",
    "DOSError",
    "EarlyStopping",
    "Engine",
    "History",
    "InTurn",
    "InputError",
    "JSONLines",
    "MicroClusters",
    "MirrorAndTurn",
    "Network",
    "Normalize",
    "PeerLost",
    "Peers",
    "Plan",
    "Report",
    "Samples",
    "Stopped",
    "TensorBoard",
    "TrainingError",
    "Turn",
    "View",
    "dos_loss",
    "embed",
    "fit",
    "fit_many",
    "join_peers",
    "knn_probe",
    "lenet",
    "load_weights",
    "logistic_probe",
    "measure",
    "mlp",
    "oversample",
    "predict",
    "resnet18",
    "resnet32",
    "save_weights",
    "several",
    "to_onnx",
    "with_pieces",
]
