"""Files in, Samples out; and the protocols that make balanced data imbalanced.

`load` takes the name of a set, a folder of pictures, a manifest or arrays; `from_dataset` takes
what PyTorch calls a dataset. `imbalanced` takes samples away by a protocol and can write down
which. `mirrored_and_rotated` makes the copies of the paper's first experiment.
"""

from .aside import set_aside
from .copies import mirrored_and_rotated
from .imbalance import (
    AsItIs,
    DropFromClasses,
    GaussianDeletion,
    LongTailed,
    Step,
    parse_protocol,
)
from .index import Subset, fingerprint, imbalanced, load_index, save_index
from .load import load
from .splits import Splits, hold_out
from .torch_datasets import from_dataset

__all__ = [
    "AsItIs",
    "DropFromClasses",
    "GaussianDeletion",
    "LongTailed",
    "Splits",
    "Step",
    "Subset",
    "fingerprint",
    "from_dataset",
    "hold_out",
    "imbalanced",
    "load",
    "load_index",
    "mirrored_and_rotated",
    "parse_protocol",
    "save_index",
    "set_aside",
]
