"""The known sets: every file has one place, one checksum of the right form, and an address."""

import posixpath
import re
from urllib.parse import urlsplit

import pytest

from deep_oversampling import InputError
from deep_oversampling.data.official.catalogue import CATALOGUE, Download, File, Source, look_up

HEX = {"md5": 32, "sha1": 40, "sha256": 64}  # digits
FILES = [file for source in CATALOGUE.values() for file in source.files]
DOWNLOADS = [download for source in CATALOGUE.values() for download in source.downloads]

every_source = pytest.mark.parametrize("source", CATALOGUE.values(), ids=lambda s: s.name)
every_download = pytest.mark.parametrize("download", DOWNLOADS, ids=lambda d: d.file.path)


def idx(folder: str) -> set[str]:
    kinds = ("images-idx3", "labels-idx1")
    return {f"{folder}/{split}-{kind}-ubyte.gz" for split in ("train", "t10k") for kind in kinds}


LAYOUT = {
    "mnist": idx("mnist"),
    "fashion-mnist": idx("fashion-mnist"),
    "mnist-back-rotation": {"mnist_rotation_back_image_new.zip"},
    "svhn": {"svhn/train_32x32.mat", "svhn/test_32x32.mat"},
    "cifar10": {
        f"cifar-10-batches-bin/{name}.bin"
        for name in ("test_batch", *(f"data_batch_{i}" for i in range(1, 6)))
    },
    "cifar100": {"cifar-100-binary/train.bin", "cifar-100-binary/test.bin"},
    "stl10": {f"stl10_binary/{s}_{kind}.bin" for s in ("train", "test") for kind in "Xy"},
    "digits": set(),
}


def test_the_layout_of_the_data_folder() -> None:
    assert {name: {f.path for f in s.files} for name, s in CATALOGUE.items()} == LAYOUT


@every_source
def test_sources_are_found_by_their_name_and_described(source: Source) -> None:
    assert look_up(source.name) is source
    assert source.title
    assert source.about
    assert source.terms
    assert source.made_from is None or source.made_from in CATALOGUE


@pytest.mark.parametrize("file", [*FILES, *(d.file for d in DOWNLOADS)], ids=lambda f: f.path)
def test_checksums_have_the_length_of_their_kind(file: File) -> None:
    kind, digits = file.hash.split(":")
    assert re.fullmatch(rf"[0-9a-f]{{{HEX[kind]}}}", digits)
    assert file.size is None or file.size > 0


def test_no_two_files_share_a_place_or_a_checksum() -> None:
    assert len({file.path for file in FILES}) == len(FILES)
    assert len({file.hash for file in FILES}) == len(FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.path)
def test_files_lie_below_the_data_folder(file: File) -> None:
    assert posixpath.normpath(file.path) == file.path
    assert not file.path.startswith(("/", ".."))


@every_download
def test_every_address_names_the_file(download: Download) -> None:
    assert download.urls
    for url in download.urls:
        parts = urlsplit(url)
        assert parts.scheme in ("http", "https")
        assert parts.path.endswith("/" + posixpath.basename(download.file.path))


@every_download
def test_archives_hold_what_is_kept_of_them(download: Download) -> None:
    assert bool(download.members) == download.file.path.endswith(".tar.gz")
    assert download.files == (download.members or (download.file,))


@pytest.mark.parametrize(
    ("name", "path", "size"),
    [
        ("cifar10", "cifar-10-batches-bin/test_batch.bin", 30_730_000),
        ("cifar100", "cifar-100-binary/train.bin", 153_700_000),
        ("stl10", "stl10_binary/train_X.bin", 138_240_000),
    ],
)
def test_sizes_follow_from_the_formats(name: str, path: str, size: int) -> None:
    assert {file.path: file.size for file in CATALOGUE[name].files}[path] == size


def test_only_back_rotation_can_be_made_from_another_source() -> None:
    made = {source.name: source.made_from for source in CATALOGUE.values() if source.made_from}
    assert made == {"mnist-back-rotation": "mnist"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minst", r"must be one of mnist, .*, digits, found 'minst'; did you mean 'mnist'"),
        ("CIFAR10", r"found 'CIFAR10'; did you mean 'cifar10' or 'cifar100'\?"),
        ("fashion_mnist", r"found 'fashion_mnist'; did you mean 'fashion-mnist'"),
        ("imagenet", r"must be one of mnist, .*, digits, found 'imagenet'$"),
        ("", r"found ''$"),
    ],
)
def test_unknown_names_are_answered_with_near_ones(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        look_up(name)


def test_a_catalogue_of_ones_own_can_be_looked_up() -> None:
    own = Source("own", "Own", "one picture", "mine")
    assert look_up("own", {"own": own}) is own
    with pytest.raises(InputError, match="must be one of own, found 'mnist'"):
        look_up("mnist", {"own": own})
