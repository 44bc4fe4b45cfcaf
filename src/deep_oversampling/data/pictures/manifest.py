"""A table of pictures: CSV or Parquet with the columns path, label and, if wanted, split."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from errno import EFBIG
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...reading import plain_size
from .listing import SPLIT_OF, Entry, Listing, make_listing, shown

__all__ = ["list_manifest"]

Row = tuple[str, dict[str, str]]  # where it stands; column -> text
_MOST_BYTES, _MOST_HEAD = 1 << 30, 1 << 16  # of a manifest, and of its first line
_MOST_ROWS = 64  # for every byte of a Parquet file
_COLUMNS = ("path", "label", "split")


def list_manifest(path: Path | str) -> Listing:
    """The pictures a manifest names; their paths count from the manifest's own folder."""
    path = Path(path).absolute()
    rows = _parquet_rows(path) if path.suffix.lower() == ".parquet" else _csv_rows(path)
    entries: dict[str, Entry] = {}
    missing = []
    for place, row in rows:
        entry = _entry(path, place, row)
        before = entries.setdefault(entry.file, entry)
        if before != entry:
            raise InputError(
                f"{path}, {place}: a picture must have one label and be in one split, found "
                f"{row['path']} before as {before.label!r} in {before.split}"
            )
        if not os.path.isfile(entry.file):  # noqa: PTH113  Path's raises on impossible names
            missing.append(f"{place}: {row['path']}")
    if missing:
        raise InputError(
            f"{path} must name files that are there, found {len(missing)} of {len(entries)} "
            f"missing, the first in {missing[0]} (paths count from {path.parent})"
        )
    return make_listing(path, list(entries.values()))


def _entry(path: Path, place: str, row: dict[str, str]) -> Entry:
    if not row["path"] or not row["label"]:
        raise InputError(
            f"{path}, {place}: every row must have a path and a label, found path "
            f"{row['path']!r} and label {row['label']!r}"
        )
    split = row.get("split", "train")  # an empty cell is not the same as no such column
    if split.lower() not in SPLIT_OF:
        raise InputError(
            f"{path}, {place}: split must be train, validation or test, found {split!r}"
        )
    return Entry(SPLIT_OF[split.lower()], shown(row["label"]), str(path.parent / row["path"]))


def _csv_rows(path: Path) -> Iterator[Row]:
    try:
        plain_size(path, _MOST_BYTES)
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline(_MOST_HEAD)
            delimiter = max(",;\t", key=Counter(head).__getitem__)  # some write ; for ,
            names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]
            columns = _checked_columns(path, names)
            reader = csv.DictReader(file, columns, delimiter=delimiter, restval="")
            for row in reader:
                yield f"line {reader.line_num + 1}", _texts(row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} must be a readable CSV file in UTF-8: {error}") from None


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise InputError(
            f"reading {path} needs pyarrow, found that it cannot be imported ({error}); "
            "pip install 'deep-oversampling[parquet]' or store the manifest as CSV"
        ) from None
    try:
        size = plain_size(path, _MOST_BYTES)
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            columns = dict(zip(_checked_columns(path, names), names, strict=True))
            rows = file.metadata.num_rows
            if rows > _MOST_ROWS * size:
                raise OSError(EFBIG, f"{rows:,} rows in {size:,} bytes are no paths that differ")
            wanted = [columns[name] for name in _COLUMNS if name in columns]
            number = 0
            for batch in file.iter_batches(columns=wanted):
                for row in batch.to_pylist():
                    yield f"row {number}", _texts({k.lower(): v for k, v in row.items()})
                    number += 1
    except (OSError, ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be a readable Parquet file: {error}") from None


def _checked_columns(path: Path, names: Sequence[str]) -> list[str]:
    lower = [name.lower() for name in names]
    twice = [name for name in _COLUMNS if lower.count(name) > 1]
    if not {"path", "label"} <= set(lower) or twice:
        raise InputError(
            f"{path} must have the columns path and label once (and may have split), found "
            f"{', '.join(map(repr, names)) or 'none'}"
        )
    return lower


def _texts(row: dict[str, Any]) -> dict[str, str]:
    return {name: _text(row[name]) for name in _COLUMNS if name in row}


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():  # a column of numbers with a gap
        value = int(value)
    return "" if value is None else str(value).strip()
