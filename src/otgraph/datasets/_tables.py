"""Tables of numbers with names, from text files."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph.exceptions import FormatError

if TYPE_CHECKING:
    from pathlib import Path

    from otgraph.typing import SparseMatrix

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
SUFFIXES = [*SEPARATORS, *(f"{suffix}.gz" for suffix in SEPARATORS)]
# Rows that are dense at one time: few enough for thirty thousand genes, enough to be quick.
ROWS_AT_A_TIME = 500


def read_table(path: Path) -> tuple[SparseMatrix, list[str], list[str]]:
    """Numbers as CSR, names of the columns, names of the rows.

    The first row names the columns. The first column names the rows if it is not made of
    numbers, or if its own name is empty or missing; otherwise rows are numbered.
    """
    suffixes = "".join(path.suffixes[-2:])
    separator = SEPARATORS.get(suffixes.removesuffix(".gz")) or SEPARATORS.get(path.suffix)
    if separator is None:
        msg = f"{str(path)!r} must end in {', '.join(SUFFIXES)} or .h5ad."
        raise FormatError(msg)
    pandas = require("pandas", "data")
    try:
        # As plain text: pandas would rename a column whose name comes twice.
        first = pandas.read_csv(path, sep=separator, header=None, nrows=1, dtype=str)
        header = first.iloc[0].fillna("").str.strip().tolist()
        with pandas.read_csv(
            path, sep=separator, header=None, skiprows=1, chunksize=ROWS_AT_A_TIME
        ) as chunks:
            return _assembled(chunks, header, path)
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        _refuse(path, str(error).strip().removesuffix("."), error)
    except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        _refuse(path, f"it is damaged or no text ({error})", error)


def _assembled(
    chunks: Any, header: list[str], path: Path
) -> tuple[SparseMatrix, list[str], list[str]]:
    blocks: list[SparseMatrix] = []
    names: list[str] = []
    named = False
    for chunk in chunks:
        if not blocks:
            unnamed = header[0] == "" or chunk.shape[1] == len(header) + 1
            named = unnamed or chunk.dtypes.iloc[0].kind not in "iufb"
        if named:
            names += chunk.iloc[:, 0].astype(str).tolist()
            chunk = chunk.iloc[:, 1:]
        blocks.append(sp.csr_matrix(_numbers(chunk, header, path)))
    if not blocks or not blocks[0].shape[1]:
        _refuse(path, "it has no rows of numbers")
    X = sp.vstack(blocks, format="csr")
    columns = header[-X.shape[1] :]
    if len(columns) != X.shape[1]:
        _refuse(path, f"it names {len(header)} columns and has {X.shape[1]}")
    return X, columns, names or [str(row) for row in range(X.shape[0])]


def _numbers(chunk: Any, header: list[str], path: Path) -> Any:
    words = [column for column in range(chunk.shape[1]) if chunk.dtypes.iloc[column].kind == "O"]
    if words:
        column = chunk.iloc[:, words[0]].dropna()
        number = require("pandas", "data").to_numeric(column, errors="coerce")
        word = column[number.isna()].iloc[0]
        name = header[-chunk.shape[1] :][words[0]]
        _refuse(path, f"column {name} holds {str(word)!r}, which is no number")
    return np.ascontiguousarray(chunk.to_numpy(dtype=np.float64))


def _refuse(path: Path, why: str, error: BaseException | None = None) -> NoReturn:
    msg = (
        f"{str(path)!r} cannot be read as a table of numbers with one row per cell and the "
        f"names of the genes in its first line: {why}."
    )
    raise FormatError(msg) from error
