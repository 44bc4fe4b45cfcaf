"""A subset as a file: not the samples, but what it takes to draw the same ones again."""

from __future__ import annotations

import hashlib
import json
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..reading import MOST_WORDS, Migrations, migrated, parse_json, read_plain
from ..samples import Samples
from ..schema import Holds, is_text, is_whole, list_of
from ..seeding import streams
from ..views import View, chunks
from .imbalance import ImbalanceProtocol, draw, parse_protocol

__all__ = ["Record", "Subset", "fingerprint", "imbalanced", "load_index", "save_index"]

_FORMAT, _VERSION = "deep_oversampling index", 1
_MIGRATIONS: Migrations = {}  # no other version was ever written


@dataclass(frozen=True)
class Record:
    """What an index file says: how the subset is drawn, and how to know that it is the same."""

    source: str  # its name, where one was given
    fingerprint: str  # of the source
    protocol: str
    seed: int
    before: tuple[int, ...]  # (n,)  samples of each class in the source
    after: tuple[int, ...]  # (n,)  and in the subset
    kept: int
    rows: str  # hash of the rows kept
    torch: str  # version that drew them


@dataclass(frozen=True, eq=False)
class Subset:
    """What a protocol left of the samples of ``whole``, and what it took away.

    The removed samples cost nothing more: a share of them serves as balanced validation data,
    ``subset.whole.subset(subset.removed)``. Not if ``whole`` holds copies (`mirrored_and_rotated`):
    then some copies of an image are removed and others stay.
    """

    whole: Samples
    protocol: ImbalanceProtocol
    seed: int
    source: str  # the name of what ``whole`` came from
    rows: Tensor  # (kept,)  of ``whole``, sorted

    @cached_property
    def samples(self) -> Samples:
        """The samples kept."""
        return self.whole.subset(self.rows)

    @cached_property
    def removed(self) -> Tensor:  # (m − kept,)
        """The rows taken away, sorted."""
        gone = torch.ones(len(self.whole), dtype=torch.bool)
        gone[self.rows] = False
        return gone.nonzero().flatten()

    @property
    def reduced(self) -> tuple[int, ...]:
        """The classes that lost samples."""
        return tuple(self.whole.y.cpu()[self.removed].unique().tolist())

    @cached_property
    def record(self) -> Record:
        """For the index file; the first time, every sample of ``whole`` is read for it."""
        return Record(
            source=self.source,
            fingerprint=fingerprint(self.whole),
            protocol=str(self.protocol),
            seed=self.seed,
            before=tuple(self.whole.class_counts.tolist()),
            after=tuple(self.samples.class_counts.tolist()),
            kept=len(self.rows),
            rows=_hash_of_rows(self.rows),
            torch=str(torch.__version__),
        )


def imbalanced(
    samples: Samples, protocol: ImbalanceProtocol | str, *, seed: int, source: str = ""
) -> Subset:
    """The subset of the samples that a protocol leaves: the same for the same labels and seed.

    A protocol may be given as text: ``imbalanced(samples, "exp:100", seed=0)``.
    """
    if not isinstance(protocol, ImbalanceProtocol):
        protocol = parse_protocol(protocol)
    if not isinstance(seed, Integral):
        raise InputError(f"the seed must be a whole number, found {seed!r}")
    generator = streams(int(seed))("imbalance")
    rows = draw(samples.y, protocol.quota(samples.class_counts, generator), generator)
    return Subset(samples, protocol, int(seed), source, rows)


def fingerprint(samples: Samples) -> str:
    """A hash of shape, type, class names, labels and contents: alike wherever they are stored."""
    x = samples.x
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((tuple(x.shape), str(x.dtype), samples.classes)).encode())
    digest.update(_bytes(samples.y.cpu()))
    # a view computes on the CPU what it changes, since devices round differently
    for part in chunks(x.to("cpu") if isinstance(x, View) else x):
        digest.update(_bytes(part.cpu()))
    return digest.hexdigest()


def save_index(subset: Subset, path: Path | str) -> None:
    """Write what `load_index` needs to draw the subset again; the file is whole or not there."""
    path = Path(path)
    content = {"format": _FORMAT, "version": _VERSION, **asdict(subset.record)}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(v)}" for name, v in content.items())
    part = path.parent / f"{path.name}.{secrets.token_hex(4)}.part"
    try:
        part.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} must be a file in a folder that can be written to: {error}; create the "
            "folder, or choose another"
        ) from None
    finally:
        with suppress(OSError):  # gone already, or never there
            part.unlink()


def load_index(path: Path | str, samples: Samples) -> Subset:
    """Draw the subset of an index file again, from the same source; refuse anything else."""
    path = Path(path)
    said = _read(path)
    counts = tuple(samples.class_counts.tolist())
    if len(samples) != sum(said.before):
        raise _other(path, said, f"{len(samples)} samples instead of {sum(said.before)}")
    if counts != said.before:
        raise _other(path, said, f"class counts {list(counts)} instead of {list(said.before)}")
    try:
        protocol = parse_protocol(said.protocol)
        subset = imbalanced(samples, protocol, seed=said.seed, source=said.source)
    except InputError as error:
        raise _not_an_index(path, f"protocol {said.protocol!r}: {error}") from None
    found = subset.record
    if found.fingerprint != said.fingerprint:
        raise _other(path, said, "contents, order, shape, type or class names differ")
    if found.rows != said.rows:
        raise InputError(
            f"{path} must lead to the samples it was made with, found that others are drawn: the "
            f"file was changed, or this version of torch ({found.torch}) draws otherwise than the "
            f"one that made it ({said.torch}); use that version, or draw a new subset"
        )
    if (found.after, found.kept) != (said.after, said.kept):
        raise _not_an_index(path, "after or kept that do not count the samples of its rows")
    return subset


def _read(path: Path) -> Record:
    try:
        content = parse_json(read_plain(path, MOST_WORDS))
    except OSError as error:
        raise InputError(f"{path} must be a readable index file: {error}") from None
    except ValueError as error:
        raise _not_an_index(path, f"no JSON: {error}") from None
    if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
        raise _not_an_index(path, f"no {_FORMAT!r} as its format")
    version = content.pop("version", None)
    content = migrated(content, version, _VERSION, _MIGRATIONS)
    if content is None:
        raise InputError(
            f"{path} must be an index of version {_VERSION}, found version {version!r:.80}; use "
            "the release of deep_oversampling that wrote it"
        )
    names = {field.name for field in fields(Record)}
    if missing := sorted(names - content.keys()):
        raise _not_an_index(path, f"no {', '.join(missing)}")
    if unknown := sorted(content.keys() - names):
        raise _not_an_index(path, f"unknown fields {', '.join(map(repr, unknown))}")
    for name, (holds, must) in _TYPES.items():
        if not holds(content[name]):
            raise _not_an_index(path, f"{name} = {content[name]!r:.80} where there must be {must}")
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    return Record(**values)


def _are_counts(value: Any) -> bool:
    return list_of(is_whole)(value) and min(value, default=0) >= 0


_TYPES: dict[str, tuple[Holds, str]] = {
    **dict.fromkeys(("source", "fingerprint", "protocol", "rows", "torch"), (is_text, "text")),
    **dict.fromkeys(("seed", "kept"), (is_whole, "a whole number")),
    **dict.fromkeys(("before", "after"), (_are_counts, "a list of counts")),
}


def _other(path: Path, said: Record, found: str) -> InputError:
    named = f" ({said.source})" if said.source else ""
    return InputError(
        f"{path} must be used with the samples it was made from{named}, found others: {found}; "
        "load that source, all of it and in its own order"
    )


def _not_an_index(path: Path, found: str) -> InputError:
    return InputError(
        f"{path} must be an index file as save_index writes it, found {found}; make it again, or "
        "get an undamaged copy"
    )


def _hash_of_rows(rows: Tensor) -> str:
    return hashlib.blake2b(_bytes(rows), digest_size=16).hexdigest()


def _bytes(values: Tensor) -> memoryview:
    return values.contiguous().reshape(-1).view(torch.uint8).numpy().data
