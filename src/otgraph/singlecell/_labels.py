"""Convert labels between ``adata.obs`` and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from otgraph._optional import require
from otgraph.exceptions import argument_error
from otgraph.singlecell._adata import entry

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray
    from pandas import Categorical, Index

    from otgraph.typing import Array, FloatArray, IndexArray, LongArray

Label: TypeAlias = str | float | bool | None


@dataclass(frozen=True, eq=False)
class CellLabels:
    """Labels as numbers, and the names of the numbers."""

    codes: LongArray  # -1 = unknown
    categories: Index  # the labels that some cell has
    ordered: bool
    colors: NDArray[np.str_] | None  # one per category, where scanpy has chosen them

    @classmethod
    def of(cls, adata: AnnData, obs_key: str, unknown: Label | Iterable[Label]) -> CellLabels:
        """Labels of a column; missing values and labels in `unknown` become -1."""
        column = entry(adata.obs, obs_key, "obs_key", "a column of `adata.obs`")
        if column.dtype.kind == "f" and not _whole(column.dropna().to_numpy()):
            msg = f"`adata.obs[{obs_key!r}]` must hold labels, got numbers with fractions."
            raise argument_error(TypeError, "obs_key", msg)
        others = (
            list(unknown)
            if isinstance(unknown, Iterable) and not isinstance(unknown, str)
            else [unknown]
        )
        column = column.mask(column.isin(others)).astype("category").cat.remove_unused_categories()
        if not len(column.cat.categories):
            msg = f"`adata.obs[{obs_key!r}]` must hold at least one known label, got none."
            raise argument_error(ValueError, "obs_key", msg)
        categories = column.cat.categories
        codes = np.asarray(column.cat.codes, dtype=np.int64)
        colors = _colors(adata, obs_key, categories)
        return cls(codes, categories, bool(column.cat.ordered), colors)

    @property
    def names(self) -> Array:
        """Labels as an array that every file format can hold."""
        if self.categories.dtype.kind in "iufb":
            return np.asarray(self.categories)
        return np.array([str(name) for name in self.categories], dtype=object)

    def decoded(self, codes: IndexArray) -> Categorical:
        """Numbers as a pandas categorical; -1 is missing."""
        pandas = require("pandas", "singlecell")
        return pandas.Categorical.from_codes(codes, self.categories, ordered=self.ordered)


def _whole(values: FloatArray) -> bool:
    return bool(np.isfinite(values).all() and (values == np.round(values)).all())


def _colors(adata: AnnData, obs_key: str, categories: Index) -> NDArray[np.str_] | None:
    """Colors of the remaining categories; scanpy has one for each category of the column."""
    column = adata.obs[obs_key]
    colors = adata.uns.get(f"{obs_key}_colors")
    categorical = isinstance(column.dtype, require("pandas", "singlecell").CategoricalDtype)
    if colors is None or not categorical or len(colors) < len(column.cat.categories):
        return None
    return np.asarray(colors)[column.cat.categories.get_indexer(categories)]
