"""From numbers in a file to points: missing values, scales of the columns, principal components.

All problems of a file are reported in one message, with the options that solve them.
"""

from __future__ import annotations

import json
import shlex
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otgraph._text import listed, plain
from otgraph.cli.columns import identifiers, unequal_spread
from otgraph.cli.options import ReadOptions
from otgraph.cli.terminal import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otgraph.cli.reading import Points
    from otgraph.typing import Array, Values

RECORD = "preparation"  # among the parameters of a graph
# Metrics that do not depend on the units of the columns, or see no columns.
UNIT_FREE = {"precomputed", "seuclidean", "mahalanobis", "canberra"}


@dataclass(frozen=True)
class Preparation:
    """What was done to the numbers of a file, so that the same can be done to new points.

    New points are ``(X - center) / scale @ components.T``, after `fill` replaces missing values.
    """

    columns: list[str] | None
    missing: str | None = None
    n_dropped: int = 0
    n_filled: int = 0
    fill: Array | None = None
    standardized: bool = False
    center: Array | None = None
    scale: Array | None = None
    components: Array | None = None
    explained: float | None = None  # share of the variance

    def __str__(self) -> str:
        """One line for a report."""
        parts = []
        if self.n_dropped:
            parts.append(f"{self.n_dropped:,} row(s) with missing values left out")
        if self.n_filled:
            parts.append(f"{self.n_filled:,} missing value(s) replaced by the mean of the column")
        if self.standardized:
            parts.append("columns standardized")
        if self.components is not None:
            kept, explained = len(self.components), f"{self.explained:.1%}"
            parts.append(f"{kept:,} principal component(s), {explained} of the variance")
        return "; ".join(parts)

    def record(self) -> str:
        """Text for the parameters of a graph."""
        return json.dumps(plain({**vars(self), "summary": str(self)}))


def recorded_preparation(params: Mapping[str, object]) -> str | None:
    """The line of a report, from the parameters of a graph."""
    return json.loads(str(params[RECORD]))["summary"] if RECORD in params else None


def prepared(points: Points, options: ReadOptions) -> Points:
    """Points with the columns and rows that can be used, scaled as the options say.

    Raises
    ------
    ValueError
        If there are words, or missing values without ``--missing``. The message names all of them,
        and the options that solve it.
    """
    missing = missing_entries(points.values)
    unsettled = missing.n > 0 and options.missing in (None, "error")
    doubts = _doubts(points, options)
    if points.words or unsettled:
        refuse(_all_problems(points, options, missing if unsettled else None, doubts))
    done = Preparation(None if points.column_names is None else points.column_names.tolist())
    if missing.n and options.missing == "drop-rows":
        points, done = _without_rows(points, missing, done)
    elif missing.n:
        points, done = _filled(points, missing, done)
    elif options.missing == "mean":
        done = replace(done, missing="mean", fill=_means(points.values))
    values = points.values
    if options.standardize:
        values, done = _standardized(values, done)
    if options.pca is not None:
        values, done = _projected(values, options.pca, points.source, done)
    return replace(
        points,
        values=values,
        features=points.values,
        preparation=done if str(done) or done.missing else None,
        doubts=doubts,
    )


class MissingEntries(NamedTuple):
    """Where values are missing: positions in the matrix, by row and then by column."""

    rows: Array
    columns: Array

    @property
    def n(self) -> int:
        """Number of missing values."""
        return len(self.rows)


def missing_entries(values: Values) -> MissingEntries:
    """All NaN in a dense or sparse matrix."""
    stored: Array = values if isinstance(values, np.ndarray) else values.data
    # The minimum is NaN if any entry is; most files need no matrix of truth values.
    if stored.dtype.kind != "f" or stored.size == 0 or not np.isnan(np.min(stored)):
        return MissingEntries(*np.zeros((2, 0), dtype=np.intp))
    if isinstance(values, np.ndarray):
        return MissingEntries(*np.nonzero(np.isnan(values)))
    entries = values.tocoo()
    absent = np.isnan(entries.data)
    return MissingEntries(entries.row[absent], entries.col[absent])


@dataclass(frozen=True)
class Doubt:
    """A remark on columns that are probably used by mistake."""

    remark: str
    advice: str


def warn_of_doubts(points: Points, metric: str | None = None) -> None:
    """Warn of columns that are probably not features, and of very different scales."""
    for kind, doubt in points.doubts.items():
        if kind != "spread" or metric not in UNIT_FREE:
            text = f"{points.source}: {doubt.remark}. {doubt.advice}."
            warnings.warn(text, UserWarning, stacklevel=2)


def _all_problems(
    points: Points,
    options: ReadOptions,
    missing: MissingEntries | None,
    doubts: Mapping[str, Doubt],
) -> str:
    """One message with the complete options for the next attempt."""
    problems = [str(column) for column in points.words]
    thousands = any(column.thousands for column in points.words)
    if not points.values.size:
        way_out = " Write numbers without thousands separators." if thousands else ""
        return f"{points.source}: no column holds numbers only: {'; '.join(problems)}.{way_out}"
    drop = [column.handle for column in points.words]
    add, instead = [], []
    if missing is not None:
        problems.append(_missing_text(points, missing))
        empty = [] if points.transposed else _empty_columns(points, missing)
        drop += [_handle(points, i) for i in empty]
        if missing.n > len(empty) * points.values.shape[0]:
            add.append("--missing drop-rows")
            instead.append("--missing mean fills in means instead")
    drop += [_handle(points, i) for i in _identifiers(points)]
    if drop:
        add.insert(0, drop_option(options, drop))
        instead.insert(0, "--columns chooses columns instead")
    if thousands:
        instead.insert(0, "write numbers without thousands separators to keep their columns")
    if "spread" in doubts:
        add.append("--standardize")
    remarks = f" Besides, {'; '.join(doubt.remark for doubt in doubts.values())}." if doubts else ""
    last = "".join(f"; {text}" for text in instead)
    return f"{points.source}: {'; '.join(problems)}.{remarks} Add {' '.join(add)}{last}."


def _missing_text(points: Points, missing: MissingEntries) -> str:
    names = points.column_names
    counts = np.bincount(missing.columns, minlength=points.values.shape[1])
    where = [
        f"{(i if names is None else names[i])!s} ({counts[i]:,})" for i in np.flatnonzero(counts)
    ]
    row, column = missing.rows[0], missing.columns[0]
    first = str(column if names is None else names[column])
    n_rows = len(np.unique(missing.rows))
    return (
        f"NaN at row {row}, column {first!r} ({missing.n:,} missing value(s) in {n_rows:,} of "
        f"{points.values.shape[0]:,} rows, by column: {listed(where)}; rows count from 0)"
    )


def _empty_columns(points: Points, missing: MissingEntries) -> list[int]:
    """Columns without any value, which no choice of rows or means can save."""
    n, d = points.values.shape
    return np.flatnonzero(np.bincount(missing.columns, minlength=d) == n).tolist()


def _identifiers(points: Points) -> list[int]:
    if points.column_names is None or points.transposed or points.adata is not None:
        return []
    return identifiers(points.values, points.column_names.tolist())


def drop_option(options: ReadOptions, more: list[str]) -> str:
    """``--drop`` with what was dropped before and more, as a shell takes it."""
    names = [name.strip() for entry in options.drop or () for name in entry.split(",")]
    return f"--drop {shlex.quote(','.join(dict.fromkeys([*names, *more])))}"


def _doubts(points: Points, options: ReadOptions) -> dict[str, Doubt]:
    doubts = {}
    found = _identifiers(points)
    if found:
        names = ", ".join(_column(points, i) for i in found)
        advice = f"{drop_option(options, [_handle(points, i) for i in found])} leaves it out"
        doubts["identifier"] = Doubt(f"{names} numbers the rows and counts as a feature", advice)
    dense = isinstance(points.values, np.ndarray) and points.adata is None
    if dense and options.standardize is None and options.pca is None:
        features = np.setdiff1d(np.arange(points.values.shape[1]), found)
        unequal = unequal_spread(points.values[:, features] if found else points.values)
        if unequal is not None:
            factor, *ends = unequal
            large, small = (_column(points, int(features[i])) for i in ends)
            doubts["spread"] = Doubt(
                f"the spread of {large} is {factor:,.0f} times that of half of the columns or "
                f"more, so that columns such as {small} hardly count",
                "--standardize gives all columns the same weight, --no-standardize says that "
                "they have one unit",
            )
    return doubts


def _handle(points: Points, i: int) -> str:
    return points.handles[i] if points.handles else str(i)


def _column(points: Points, i: int) -> str:
    names = points.column_names
    return f"column {i}" if names is None else repr(str(names[i]))


def _without_rows(
    points: Points, missing: MissingEntries, done: Preparation
) -> tuple[Points, Preparation]:
    n = points.values.shape[0]
    kept = np.ones(n, dtype=bool)
    kept[missing.rows] = False
    if np.count_nonzero(kept) < 2:
        refuse(
            f"{points.source}: --missing drop-rows leaves {np.count_nonzero(kept)} of {n:,} rows; "
            f"{_missing_text(points, missing)}. Drop columns with --drop, or pass --missing mean."
        )
    # Rows without names are known by their numbers in the file.
    names = np.arange(n).astype(str) if points.row_names is None else points.row_names
    points = replace(
        points,
        values=points.values[kept],
        row_names=names[kept],
        aside=None if points.aside is None else points.aside[kept],
        adata=None if points.adata is None else points.adata[kept].copy(),
        kept=kept,
        file_names=points.row_names,
    )
    n_dropped = n - int(np.count_nonzero(kept))
    return points, replace(done, missing="drop-rows", n_dropped=n_dropped)


def _filled(
    points: Points, missing: MissingEntries, done: Preparation
) -> tuple[Points, Preparation]:
    empty = _empty_columns(points, missing)
    if empty:
        names = ", ".join(_column(points, i) for i in empty)
        refuse(f"{points.source}: {names} has no values, and so no mean. Drop it with --drop.")
    fill = _means(points.values)
    values = points.values.copy()
    values[missing.rows, missing.columns] = fill[missing.columns]
    done = replace(done, missing="mean", n_filled=missing.n, fill=fill)
    return replace(points, values=values), done


def _means(values: Values) -> Array:
    """Means of the columns without missing values."""
    if isinstance(values, np.ndarray):
        return np.asarray(np.nanmean(values, axis=0, dtype=np.float64))
    entries = values.tocoo()
    present = ~np.isnan(entries.data)
    n, d = values.shape
    sums = np.bincount(entries.col[present], weights=entries.data[present], minlength=d)
    return sums / (n - np.bincount(entries.col[~present], minlength=d))


def _standardized(values: Values, done: Preparation) -> tuple[Values, Preparation]:
    from sklearn.preprocessing import StandardScaler

    # Differences of points do not change if a sparse matrix keeps its zeros.
    scaler = StandardScaler(with_mean=isinstance(values, np.ndarray))
    values = scaler.fit_transform(values)
    center = scaler.mean_ if scaler.with_mean else np.zeros(values.shape[1])
    return values, replace(done, standardized=True, center=center, scale=scaler.scale_)


def _projected(
    values: Values, n: int, source: str, done: Preparation
) -> tuple[Values, Preparation]:
    from sklearn.decomposition import PCA

    most = min(values.shape)
    if not 1 <= n <= most:
        refuse(
            f"{source}: --pca must be from 1 to {most} for {values.shape[0]:,} points in "
            f"{values.shape[1]:,} dimensions, got {n}."
        )
    pca = PCA(n, random_state=0)
    values = pca.fit_transform(values)
    scale = np.ones(pca.mean_.shape) if done.scale is None else done.scale
    center = pca.mean_ * scale + (0.0 if done.center is None else done.center)
    explained = float(pca.explained_variance_ratio_.sum())
    return values, replace(
        done, center=center, scale=scale, components=pca.components_, explained=explained
    )
