"""A table of pictures: CSV or Parquet with the columns path, label and, if wanted, split."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import InputError
from .listing import SPLIT_OF, Entry, Listing, make_listing, shown

__all__ = ["list_manifest"]

Row = tuple[str, str, str, str]  # where it stands, path, label, split ("" if there is none)


def list_manifest(path: Path | str) -> Listing:
    """The pictures a manifest names; their paths count from the manifest's own folder."""
    path = Path(path).absolute()
    rows = _parquet_rows(path) if path.suffix.lower() == ".parquet" else _csv_rows(path)
    entries: dict[str, Entry] = {}
    missing = []
    for place, file, label, split in rows:
        entry = _entry(path, place, file, label, split)
        before = entries.setdefault(entry.file, entry)
        if before != entry:
            raise InputError(
                f"{path}, {place}: a picture must have one label and be in one split, found "
                f"{file} before as {before.label!r} in {before.split}"
            )
        if not Path(entry.file).is_file():
            missing.append(f"{place}: {file}")
    if missing:
        raise InputError(
            f"{path} must name files that are there, found {len(missing)} of {len(entries)} "
            f"missing, the first in {missing[0]} (paths count from {path.parent})"
        )
    return make_listing(path, list(entries.values()))


def _entry(path: Path, place: str, file: str, label: str, split: str) -> Entry:
    if not file or not label:
        raise InputError(
            f"{path}, {place}: every row must have a path and a label, found path {file!r} and "
            f"label {label!r}"
        )
    if split and split.lower() not in SPLIT_OF:
        raise InputError(
            f"{path}, {place}: split must be train, validation or test, found {split!r}"
        )
    return Entry(SPLIT_OF[split.lower() or "train"], shown(label), str(path.parent / file))


def _csv_rows(path: Path) -> Iterator[Row]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            delimiter = max(",;\t", key=Counter(head).__getitem__)  # some write ; for ,
            names = [name.strip() for name in next(csv.reader([head], delimiter=delimiter), [])]
            columns = _columns(path, names)
            reader = csv.reader(file, delimiter=delimiter)
            for row in filter(None, reader):  # blank lines are nothing
                cells = [row[c].strip() if -1 < c < len(row) else "" for c in columns]
                yield f"line {reader.line_num + 1}", cells[0], cells[1], cells[2]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} must be a readable CSV file in UTF-8: {error}") from None


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InputError(
            f"reading {path} needs pyarrow, found that it is not installed; "
            "pip install 'deep-oversampling[parquet]' or store the manifest as CSV"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            columns = _columns(path, names)
            table = file.read(columns=[names[c] for c in columns if c > -1])
    except (OSError, ArrowException) as error:
        raise InputError(f"{path} must be a readable Parquet file: {error}") from None
    cells = [table.column(names[c]).to_pylist() if c > -1 else [""] * len(table) for c in columns]
    for number, row in enumerate(zip(*cells, strict=True)):
        file, label, split = ("" if value is None else str(value).strip() for value in row)
        yield f"row {number}", file, label, split


def _columns(path: Path, names: Sequence[str]) -> list[int]:
    """Where path, label and split stand; -1 for a split that is not there."""
    lower = [name.lower() for name in names]
    if not {"path", "label"} <= set(lower):
        raise InputError(
            f"{path} must have the columns path and label (and may have split), found "
            f"{', '.join(map(repr, names)) or 'none'}"
        )
    return [lower.index(c) if c in lower else -1 for c in ("path", "label", "split")]
