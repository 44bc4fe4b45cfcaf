"""The picture sets that are known by name: where their official files are, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from ...errors import InputError

__all__ = ["CATALOGUE", "Download", "File", "Source", "look_up"]


@dataclass(frozen=True)
class File:
    """An official file: where it belongs and how it is recognised."""

    path: str  # below the data folder, with forward slashes
    hash: str  # "md5:…", "sha1:…" or "sha256:…"
    size: int | None  # bytes; None where it is not known


@dataclass(frozen=True)
class Download:
    """What one address gives: a file to keep, or a tar archive of which some members are kept.

    A member's path below the data folder is also its name in the archive.
    """

    file: File
    urls: tuple[str, ...]  # the same file at each, tried in this order
    members: tuple[File, ...] = ()

    @property
    def files(self) -> tuple[File, ...]:
        """What is there when it is done."""
        return self.members or (self.file,)


@dataclass(frozen=True)
class Source:
    """A set of pictures by its name."""

    name: str
    title: str
    about: str  # training and test samples, size, classes
    terms: str  # what its authors say about its use
    downloads: tuple[Download, ...] = ()
    made_from: str | None = None  # the source it is re-created from where its files cannot be had

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(file for download in self.downloads for file in download.files)


def look_up(name: str, catalogue: Mapping[str, Source] | None = None) -> Source:
    """The source of that name."""
    known = CATALOGUE if catalogue is None else catalogue
    if name in known:
        return known[name]
    near = get_close_matches(name.lower().replace("_", "-"), known, n=2)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise InputError(f"the data set must be one of {', '.join(known)}, found {name!r}{hint}")


def _idx(
    folder: str, places: tuple[str, ...], files: Mapping[str, tuple[str, int]]
) -> list[Download]:
    """The four files of MNIST's format, each fetched by itself."""
    return [
        Download(
            File(f"{folder}/{name}-ubyte.gz", f"md5:{md5}", size),
            tuple(f"{place}{name}-ubyte.gz" for place in places),
        )
        for name, (md5, size) in files.items()
    ]


def _secure_first(place: str) -> tuple[str, str]:
    """Old servers may not know https: the checksum holds whichever way the file came."""
    return f"https://{place}", f"http://{place}"


_MNIST = _idx(
    "mnist",
    (  # mirrors: the authors' own address no longer gives the files
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    {
        "train-images-idx3": ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9912422),
        "train-labels-idx1": ("d53e105ee54ea40749a09fcbcd1e9432", 28881),
        "t10k-images-idx3": ("9fb629c4189551a2d022fa330f9573f3", 1648877),
        "t10k-labels-idx1": ("ec29112dd5afa0611ce80d1b7f02629c", 4542),
    },
)

_FASHION = _idx(
    "fashion-mnist",
    (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    {
        "train-images-idx3": ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26421880),
        "train-labels-idx1": ("25c81989df183df01b3e8a0aad5dffbe", 29515),
        "t10k-images-idx3": ("bef4ecab320f06d8554ea6380940ec79", 4422102),
        "t10k-labels-idx1": ("bb300cfdad3c16e7a12a480ee83cd310", 5148),
    },
)

# Python's zipfile reads it as it is, so it is kept as a zip.
_BACK_ROTATION = Download(
    File(
        "mnist_rotation_back_image_new.zip", "sha1:902bb7e96136dd76e9f2924d7fdb9eb832f7bc33", None
    ),
    _secure_first("www.iro.umontreal.ca/~lisa/icml2007data/mnist_rotation_back_image_new.zip"),
)

_SVHN = [
    Download(
        File(f"svhn/{name}", f"md5:{md5}", size),
        _secure_first(f"ufldl.stanford.edu/housenumbers/{name}"),
    )
    for name, md5, size in (
        ("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", 182040794),
        ("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", 64275384),
    )
]

_CIFAR10 = Download(
    File("cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530", 170052171),
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    tuple(
        File(f"cifar-10-batches-bin/{name}.bin", f"sha256:{sha256}", 10000 * (1 + 3 * 32 * 32))
        for name, sha256 in (
            ("data_batch_1", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
            ("data_batch_2", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
            ("data_batch_3", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
            ("data_batch_4", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
            ("data_batch_5", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
            ("test_batch", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
        )
    ),
)

_CIFAR100 = Download(
    File("cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8", 168513733),
    ("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",),
    tuple(
        File(f"cifar-100-binary/{name}", f"md5:{md5}", m * (2 + 3 * 32 * 32))
        for name, md5, m in (
            ("train.bin", "6172c7755cfe09b2fe270c85cebc1b15", 50000),
            ("test.bin", "4499cfba6c016c1be1438163640a0898", 10000),
        )
    ),
)

_STL10 = Download(
    File("stl10_binary.tar.gz", "md5:91f7769df0f17e558f3565bffb0c7dfb", 2640397119),
    _secure_first("ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"),
    tuple(  # the pictures without labels, most of the archive, are left in it
        File(f"stl10_binary/{name}", f"md5:{md5}", size)
        for name, md5, size in (
            ("train_X.bin", "918c2871b30a85fa023e0c44e0bee87f", 5000 * 3 * 96 * 96),
            ("train_y.bin", "5a34089d4802c674881badbb80307741", 5000),
            ("test_X.bin", "7f263ba9f9e0b06b93213547f721ac82", 8000 * 3 * 96 * 96),
            ("test_y.bin", "36f9794fa4beb8a2c72628de14fa638e", 8000),
        )
    ),
)

CATALOGUE: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            "mnist",
            "MNIST",
            "60,000 + 10,000 handwritten digits, 28×28 grey, 10 classes",
            "LeCun, Cortes and Burges; CC BY-SA 3.0",
            tuple(_MNIST),
        ),
        Source(
            "fashion-mnist",
            "Fashion-MNIST",
            "60,000 + 10,000 articles of clothing, 28×28 grey, 10 classes",
            "Xiao, Rasul and Vollgraf, arXiv:1708.07747; MIT licence",
            tuple(_FASHION),
        ),
        Source(
            "mnist-back-rotation",
            "MNIST-back-rotation",
            "12,000 + 50,000 rotated digits on pictures, 28×28 grey, 10 classes",
            "Larochelle et al., ICML 2007; no licence stated",
            (_BACK_ROTATION,),
            made_from="mnist",
        ),
        Source(
            "svhn",
            "SVHN",
            "73,257 + 26,032 house numbers, cropped digits, 32×32 colour, 10 classes",
            "Netzer et al., NIPS workshop 2011; non-commercial use only",
            tuple(_SVHN),
        ),
        Source(
            "cifar10",
            "CIFAR-10",
            "50,000 + 10,000 photographs, 32×32 colour, 10 classes",
            "Krizhevsky, technical report 2009, to be cited; no licence stated",
            (_CIFAR10,),
        ),
        Source(
            "cifar100",
            "CIFAR-100",
            "50,000 + 10,000 photographs, 32×32 colour, 100 classes",
            "Krizhevsky, technical report 2009, to be cited; no licence stated",
            (_CIFAR100,),
        ),
        Source(
            "stl10",
            "STL-10",
            "5,000 + 8,000 photographs, 96×96 colour, 10 classes",
            "Coates, Lee and Ng, AISTATS 2011; no licence stated, pictures from ImageNet",
            (_STL10,),
        ),
        Source(
            "digits",
            "Digits",
            "1,797 handwritten digits, 8×8 grey, 10 classes; comes with scikit-learn",
            "Alpaydin and Kaynak, UCI repository; CC BY 4.0",
        ),
    )
}
