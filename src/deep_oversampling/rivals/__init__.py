"""Every other method under one roof: the paper's own, and what people use today.

Each is stages over the one training loop (`Method`). Their losses can stand in for the
cross-entropy in ℓ_g: ``fit(network, samples, loss=focal())``. DOS presents the classes alike, so
a loss that makes up for their counts as well (`logit_adjusted`) does it twice: docs/rivals.md.
"""

from .class_weights import CLASS_BALANCED, DEFERRED, INVERSE_FREQUENCY
from .dos import DOS, DOS_KNN, DOS_LDAM, DOS_LOGIT_ADJUSTMENT, DOS_LR, DOS_PIECES, MIXUP_PIECES
from .focal import FOCAL, focal
from .ldam import LDAM_DRW, ldam, with_cosine_head
from .lmle import LMLE
from .logit_adjustment import (
    ADJUSTED_AFTERWARDS,
    LOGIT_ADJUSTMENT,
    adjusted_afterwards,
    logit_adjusted,
)
from .method import Contest, Method
from .mixup import MIXUP, MIXUP_CRT, MIXUP_LOGIT_ADJUSTMENT, REMIX
from .plain import CNN, CNN_CL
from .random_oversampling import DEFERRED_RESAMPLING, RANDOM_OVERSAMPLING
from .retraining import CRT, EMBEDDING_SMOTE
from .smote import SMOTE_PIXELS
from .triplet import TL_RS_CSL
from .weights import effective_number, inverse_frequency, weighted

__all__ = [
    "METHODS",
    "PAPER",
    "Contest",
    "Method",
    "adjusted_afterwards",
    "effective_number",
    "focal",
    "inverse_frequency",
    "ldam",
    "logit_adjusted",
    "weighted",
    "with_cosine_head",
]

_OWN = (CNN, CNN_CL, SMOTE_PIXELS, TL_RS_CSL, LMLE, DOS, DOS_LR, DOS_KNN)
_TODAY = (
    RANDOM_OVERSAMPLING,
    INVERSE_FREQUENCY,
    FOCAL,
    CLASS_BALANCED,
    DEFERRED,
    DEFERRED_RESAMPLING,
    LDAM_DRW,
    LOGIT_ADJUSTMENT,
    ADJUSTED_AFTERWARDS,
    CRT,
    EMBEDDING_SMOTE,
    MIXUP,
    REMIX,
    MIXUP_LOGIT_ADJUSTMENT,
    MIXUP_CRT,
    DOS_LOGIT_ADJUSTMENT,
    DOS_LDAM,
    DOS_PIECES,
    MIXUP_PIECES,
)
METHODS = {method.name: method for method in (*_OWN, *_TODAY)}
PAPER = tuple(method.name for method in _OWN)
