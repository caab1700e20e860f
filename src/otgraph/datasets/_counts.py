"""Tables of counts from text files, as sparse matrices with names."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._tables import first_word, has_row_names, table_chunks
from otgraph._unpacked import check_gzip
from otgraph.exceptions import FormatError, MemoryLimitError

if TYPE_CHECKING:
    from pathlib import Path

    from otgraph.typing import SparseMatrix

SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
# Rows that are dense in memory at once, for up to thirty thousand genes.
ROWS_AT_A_TIME = 500


def read_counts(
    path: Path, *, rows_at_a_time: int = ROWS_AT_A_TIME
) -> tuple[SparseMatrix, list[str], list[str]]:
    """Numbers as CSR, names of the columns, names of the rows.

    The first line names the columns. If no column names the rows, they are numbered.
    """
    if not path.name.endswith(SUFFIXES):
        msg = f"{str(path)!r} must end in {', '.join(SUFFIXES)} or .h5ad."
        raise FormatError(msg)
    try:
        check_gzip(str(path))
        return _assembled(path, rows_at_a_time)
    except MemoryError as error:
        raise MemoryLimitError(_refusal(path, str(error) or "it does not fit")) from error
    except ValueError as error:
        why = str(error).strip().removesuffix(".")
        raise FormatError(_refusal(path, why)) from error
    except (EOFError, OSError, zlib.error) as error:
        raise FormatError(_refusal(path, f"it is damaged ({error})")) from error


def _assembled(path: Path, rows: int) -> tuple[SparseMatrix, list[str], list[str]]:
    blocks: list[SparseMatrix] = []
    names: list[str] = []
    named = False
    tabs = ".tsv" in path.suffixes
    for chunk, indexed in table_chunks(str(path), tabs=tabs, rows=rows):
        if not blocks:
            named = has_row_names(chunk, indexed=indexed)
        if named:
            names += chunk.iloc[:, 0].astype(str).tolist()
            chunk = chunk.iloc[:, 1:]
        columns = list(chunk.columns)
        if not isinstance(columns[0], str):
            msg = "its first line holds no names"
            raise ValueError(msg)
        for i, name in enumerate(columns):
            if chunk.dtypes.iloc[i].kind not in "iufb":
                word = first_word(chunk.iloc[:, i])[1]
                msg = f"column {name} holds {word!r}, which is not a number"
                raise ValueError(msg)
        blocks.append(sp.csr_matrix(np.ascontiguousarray(chunk.to_numpy(dtype=np.float64))))
    X = sp.vstack(blocks, format="csr")
    return X, columns, names or [str(row) for row in range(X.shape[0])]


def _refusal(path: Path, why: str) -> str:
    return (
        f"{str(path)!r} cannot be read as a table of numbers with one row per cell and the "
        f"names of the genes in its first line: {why}."
    )
