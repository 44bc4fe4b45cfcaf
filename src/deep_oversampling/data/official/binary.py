"""The binary releases of CIFAR-10, CIFAR-100 and STL-10: bare bytes, known by their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...reading import plain_size
from ...samples import Samples
from ..splits import Splits
from .checks import MOST_BYTES, check_counts, check_labels, present

__all__ = ["load_cifar10", "load_cifar100", "load_stl10"]

# Words, for they are easier to read than lists of quoted ones.
_CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck".split()  # noqa: SIM905

# The fine labels; their order is alphabetical, as in the release's fine_label_names.txt.
_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile
cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp
lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree
orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum
rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train
trout tulip turtle wardrobe whale willow_tree wolf woman worm
""".split()  # noqa: SIM905

_STL10 = "airplane bird car cat deer dog horse monkey ship truck".split()  # noqa: SIM905


def load_cifar10(folder: Path | str) -> Splits:
    """CIFAR-10: 50,000 images to train, 10,000 to test, (m, 3, 32, 32)."""
    root = Path(folder) / "cifar-10-batches-bin"
    train = _cifar([root / f"data_batch_{i}.bin" for i in range(1, 6)], 1, _CIFAR10)
    return Splits("CIFAR-10", train, test=_cifar([root / "test_batch.bin"], 1, _CIFAR10))


def load_cifar100(folder: Path | str) -> Splits:
    """CIFAR-100 with its 100 fine labels: 50,000 images to train, 10,000 to test."""
    root = Path(folder) / "cifar-100-binary"
    train, test = (_cifar([root / f"{part}.bin"], 2, _CIFAR100) for part in ("train", "test"))
    return Splits("CIFAR-100", train, test=test)


def load_stl10(folder: Path | str) -> Splits:
    """STL-10's labelled images: 5,000 to train, 8,000 to test, (m, 3, 96, 96)."""
    root = Path(folder) / "stl10_binary"
    return Splits("STL-10", _stl10(root, "train"), test=_stl10(root, "test"))


def _cifar(files: Sequence[Path], labels: int, classes: Sequence[str]) -> Samples:
    """Records of ``labels`` label bytes, of which the last is the finest, and a CHW image."""
    records = [_records(file, labels + 3 * 32 * 32) for file in files]
    for record, file in zip(records, files, strict=True):
        check_labels(record[:, labels - 1], 0, len(classes) - 1, file)
    x = np.concatenate([record[:, labels:] for record in records])
    y = np.concatenate([record[:, labels - 1] for record in records])
    return Samples(x.reshape(-1, 3, 32, 32), y, classes)


def _stl10(root: Path, part: str) -> Samples:
    images, labels = root / f"{part}_X.bin", root / f"{part}_y.bin"
    x, y = _records(images, 3 * 96 * 96), _records(labels, 1)[:, 0]
    check_counts(len(x), len(y), images, labels)
    check_labels(y, 1, len(_STL10), labels)
    # stored column by column: (m, c, w, h)
    return Samples(x.reshape(-1, 3, 96, 96).transpose(0, 1, 3, 2), y - 1, _STL10)


def _records(file: Path, size: int) -> NDArray[np.uint8]:  # (m, size)
    try:
        plain_size(present(file), MOST_BYTES)
        content = np.fromfile(file, np.uint8)
    except OSError as error:
        raise InputError(f"{file} must be a readable file, found: {error}") from None
    if not len(content) or len(content) % size:
        raise InputError(
            f"{file} must hold whole records of {size} bytes, found {len(content)} bytes; the "
            "file is cut off or another one, download it again"
        )
    return content.reshape(-1, size)
