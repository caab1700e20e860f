"""Options that several commands share: data classes whose fields become options.

None means that an option was not given. Defaults are those of the functions that are called.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any

import typer

# Headings under which `--help` lists them.
READING, COST, SOLVER, OTHERS, RUNNING = (
    "Reading", "Cost", "Solver", "Other methods", "Running",
)  # fmt: skip


class Method(StrEnum):
    """Constructions by the names that the command line gives them."""

    quadratic = "quadratic"
    entropic = "entropic"
    knn = "knn"
    gaussian = "gaussian"
    magic = "magic"


class Search(StrEnum):
    """How candidate pairs are found."""

    auto = "auto"
    exact = "exact"
    approximate = "approximate"


class OnFailure(StrEnum):
    """What happens if a solver does not converge."""

    warn = "warn"
    fail = "raise"


class Missing(StrEnum):
    """What happens to missing values."""

    error = "error"
    drop_rows = "drop-rows"
    mean = "mean"


class Symmetrize(StrEnum):
    """The weight of an edge that is found from one side."""

    union = "union"
    average = "average"


def option(
    help: str,
    *names: str,
    default: str | None = None,
    panel: str | None = None,
    metavar: str | None = None,
) -> Any:
    """A typer option that is None if not given; its help shows the default."""
    return typer.Option(
        *names,
        help=help,
        show_default=default or False,
        rich_help_panel=panel,
        metavar=metavar,
    )


POINTS: Any = typer.Argument(
    metavar="POINTS",
    help="File: .csv, .tsv, .txt, .dat, .xlsx, .parquet, .npy, .npz, .mtx, .h5ad, or - for CSV on "
    "standard input.",
    show_default=False,
)
FEATURES: Any = typer.Argument(
    metavar="FEATURES", help="File of points, as for `otgraph graph`.", show_default=False
)
POINTS_OR_GRAPH: Any = typer.Argument(
    metavar="POINTS_OR_GRAPH",
    help="Graph (.otg), or points as for `otgraph graph`.",
    show_default=False,
)
WEIGHTS: Any = option("The file holds weights of a graph, not points.", "--weights", panel=READING)
LABELS: Any = option("Table of labels; empty or -1 is unknown.", panel=READING, metavar="FILE")
PICTURE: Any = option("Picture to draw in addition.", metavar="FILE")
EPS_VALUES: Any = option("Values, with commas between them.", metavar="VALUES")
LABEL_COLUMN: Any = option(
    "Column of the points, or of obs, with labels; it is not a feature.",
    panel=READING,
    metavar="NAME",
)


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file of points."""

    columns: Annotated[
        list[str] | None,
        option(
            "Columns to use, by name or number; commas between them.",
            panel=READING, metavar="NAMES",
        ),
    ] = None  # fmt: skip
    drop: Annotated[
        list[str] | None, option("Columns to leave out.", panel=READING, metavar="NAMES")
    ] = None
    header: Annotated[
        bool | None,
        option("The first line of a text file holds names.", default="detected", panel=READING),
    ] = None
    row_names: Annotated[
        bool | None,
        option("The first column of a table holds names.", default="detected", panel=READING),
    ] = None
    transpose: Annotated[
        bool, option("Points are columns, as in genes by cells.", "--transpose", panel=READING)
    ] = False
    missing: Annotated[
        Missing | None,
        option(
            "Missing values: leave out their rows, or take the mean of the column.",
            default="error", panel=READING,
        ),
    ] = None  # fmt: skip
    standardize: Annotated[
        bool | None,
        option(
            "Give each column mean 0 and variance 1.", default="no, with a warning", panel=READING
        ),
    ] = None
    pca: Annotated[
        int | None,
        option("Principal components to use instead of the columns.", panel=READING),
    ] = None
    key: Annotated[
        str | None,
        option("Array of several in an .npz, or sheet of an .xlsx.", panel=READING),
    ] = None
    use_rep: Annotated[
        str | None,
        option("X or a key of obsm in .h5ad.", default="X_pca; X up to 50 genes", panel=READING),
    ] = None


def given(**keywords: Any) -> dict[str, Any]:
    """Keywords that were given, as plain values."""
    return {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in keywords.items()
        if value is not None
    }


@dataclass(frozen=True)
class SolverOptions:
    """Keywords of :func:`otgraph.quadratic_ot_graph` that :func:`otgraph.eps_path` takes too."""

    metric: Annotated[
        str | None,
        option(
            "euclidean, cosine, any of scikit-learn, or precomputed.",
            default="euclidean",
            panel=COST,
        ),
    ] = None
    power: Annotated[
        float | None, option("Power of the distance.", "--power", "-p", default="2", panel=COST)
    ] = None
    normalize: Annotated[
        bool | None,
        option("Divide costs by their mean, so that eps has no unit.", default="yes", panel=COST),
    ] = None
    mass: Annotated[
        str | None,
        option("File with one mass per point.", default="ones", panel=COST, metavar="FILE"),
    ] = None
    self_loops: Annotated[
        bool | None, option("Let points keep mass, as the paper does.", default="no", panel=COST)
    ] = None
    min_degree: Annotated[
        int | None,
        option(
            "Neighbors that every point has at least; small components are joined, too.",
            default="4; 0 with --eps",
        ),
    ] = None
    connect: Annotated[
        bool | None,
        option("Join all connected components.", default="no, with a warning"),
    ] = None
    tol: Annotated[
        float | None, option("Largest relative error of a row sum.", default="1e-6", panel=SOLVER)
    ] = None
    search: Annotated[
        Search | None, option("How candidate pairs are found.", default="auto", panel=SOLVER)
    ] = None
    max_missing: Annotated[
        float | None,
        option(
            "Share of missing pairs that an approximate search may leave.",
            default="0.05",
            panel=SOLVER,
        ),
    ] = None
    n_candidates: Annotated[int | None, option("First candidates per point.", panel=SOLVER)] = None
    max_iter: Annotated[int | None, option("Limit of steps.", panel=SOLVER)] = None
    on_failure: Annotated[
        OnFailure | None,
        option(
            "Not converged: warn writes the result and exits with 3, raise writes nothing and "
            "exits with 1.",
            default="warn",
            panel=SOLVER,
        ),
    ] = None
    n_jobs: Annotated[
        int | None, option("Threads, or -1 for all cores.", default="-1", panel=SOLVER)
    ] = None
    random_state: Annotated[int | None, option("Seed.", default="0", panel=SOLVER)] = None

    def given(self) -> dict[str, Any]:
        """Keywords that the user chose, as plain values."""
        return given(**{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True)
class GraphOptions(SolverOptions):
    """Which graph to build: a method, and every keyword of every method."""

    method: Annotated[Method | None, option("Kind of graph.", default="quadratic")] = None
    eps: Annotated[
        str | None,
        option(
            "Regularization, or scale of a kernel; quadratic takes this or --mean-degree, and "
            "chooses it if it is auto.",
            metavar="FLOAT|auto",
        ),
    ] = None
    mean_degree: Annotated[
        float | None,
        option("quadratic: mean number of neighbors; finds eps.", default="15 without --eps"),
    ] = None
    u0: Annotated[
        str | None,
        option("Potentials to start from: a vector or a graph file.", panel=SOLVER, metavar="FILE"),
    ] = None
    dask: Annotated[
        str | None,
        option("Address of a Dask scheduler to compute on.", panel=SOLVER, metavar="ADDRESS"),
    ] = None
    block_rows: Annotated[int | None, option("Rows of a block on Dask.", panel=SOLVER)] = None
    n_neighbors: Annotated[
        int | None,
        option("knn, magic: neighbors.", "--n-neighbors", "-k", default="15, 5", panel=OTHERS),
    ] = None
    include_self: Annotated[
        bool | None, option("knn: a point is its own first neighbor.", default="no", panel=OTHERS)
    ] = None
    symmetrize: Annotated[
        Symmetrize | None, option("knn: edges found from one side.", default="union", panel=OTHERS)
    ] = None
    decay: Annotated[
        float | None, option("magic: power in the kernel.", default="1", panel=OTHERS)
    ] = None
    knn_max: Annotated[
        int | None, option("magic: most neighbors.", default="3 times as many", panel=OTHERS)
    ] = None
    thresh: Annotated[
        float | None, option("magic: smallest weight kept.", default="1e-4", panel=OTHERS)
    ] = None
    n_pca: Annotated[
        int | None, option("magic: principal components to use.", default="none", panel=OTHERS)
    ] = None

    def given(self) -> dict[str, Any]:
        """Keywords that the user chose, as plain values."""
        keywords = super().given()
        if self.eps is not None and not self.chooses_eps:
            try:
                keywords["eps"] = float(self.eps)
            except ValueError as error:
                msg = f"--eps must be a positive number or auto, got {self.eps!r}."
                raise ValueError(msg) from error
        return keywords

    @property
    def chooses_eps(self) -> bool:
        """Whether eps is to be chosen."""
        return self.eps == "auto"


@dataclass(frozen=True)
class RunOptions:
    """What a command prints, and whether it may replace files."""

    force: Annotated[bool, option("Replace files that exist.", "--force", panel=RUNNING)] = False
    json: Annotated[bool, option("Report as one JSON object.", "--json", panel=RUNNING)] = False
    verbose: Annotated[
        bool | None,
        option(
            "Full report, or none.",
            "--verbose/--quiet", "-v/-q",
            default="full on a terminal, one line in a pipe",
            panel=RUNNING,
        ),
    ] = None  # fmt: skip
    progress: Annotated[
        bool | None, option("Progress bars.", default="on a terminal", panel=RUNNING)
    ] = None
    debug: Annotated[bool, option("Show tracebacks.", "--debug", panel=RUNNING)] = False

    @property
    def shows_progress(self) -> bool:
        """Progress bars on a terminal, unless the user chose otherwise."""
        if self.progress is not None:
            return self.progress
        return sys.stderr.isatty() and not self.json and self.verbose is not False
