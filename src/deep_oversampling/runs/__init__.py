"""A training that is kept: settings, the two networks, what happened, and how to use it again."""

from .evaluating import Evaluation, evaluate
from .folder import Run
from .predicting import Predictions, predict_files
from .preparing import Task, prepare
from .settings import Settings, read_settings
from .training import Outcome, train

__all__ = [
    "Evaluation",
    "Outcome",
    "Predictions",
    "Run",
    "Settings",
    "Task",
    "evaluate",
    "predict_files",
    "prepare",
    "read_settings",
    "train",
]
