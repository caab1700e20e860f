"""Options that several commands share: data classes whose fields become options.

Keywords of constructions are not listed here: their options are made from the classes in
``graphs/options.py``. None means that an option was not given. Defaults are those of the functions
that are called.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

import typer

from otgraph.graphs.constructions import ALL_OPTIONS, CONSTRUCTIONS, DEFAULT
from otgraph.graphs.keywords import Keyword, merged
from otgraph.graphs.options import AUTO, DEFAULT_MEAN_DEGREE

if TYPE_CHECKING:
    Method: TypeAlias = str
else:
    Method = Literal[tuple(CONSTRUCTIONS)]

Class = TypeVar("Class", bound=type[Any])

# Headings under which `--help` lists them.
READING, COST, SOLVER, OTHERS, RUNNING = (
    "Reading", "Cost", "Solver", "Other methods", "Running",
)  # fmt: skip
HEADINGS = (None, COST, SOLVER, OTHERS)  # of options that build a graph, in order
# Headings of options that are made from keywords. All others are of the solver if the default
# construction has them.
PANELS = {
    "metric": COST,
    "power": COST,
    "normalize": COST,
    "self_loops": COST,
    "min_degree": None,
    "connect": None,
}
SHORT_NAMES = {"power": "-p", "n_neighbors": "-k"}
# Help where a file and an exit code take the place of an object and an exception.
HELP = {
    "metric": "euclidean, cosine, any of scikit-learn, or precomputed.",
    "on_failure": "Not converged: warn writes the result and exits with 3, raise writes nothing "
    "and exits with 1.",
}
# What a word on the command line can become.
WORDS = (bool, int, float, str)


class Missing(StrEnum):
    """What happens to missing values."""

    error = "error"
    drop_rows = "drop-rows"
    mean = "mean"


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


def with_keywords(*constructions: str) -> Callable[[Class], Class]:
    """Add an option for each keyword of these constructions that the class does not have.

    They are in the order of the help: by heading, where those of the command line alone come last.
    """

    def decorate(group: Class) -> Class:
        own = group.__annotations__
        made = {
            each.name: _annotation(each)
            for each in merged({name: ALL_OPTIONS[name] for name in constructions}).values()
            if each.name not in own
        }
        for name in made:
            setattr(group, name, None)
        first = {name: hint for name, hint in own.items() if _panel(hint) is None}
        hints = {**first, **made, **own}
        order = sorted(hints, key=lambda name: HEADINGS.index(_panel(hints[name])))
        group.__annotations__ = {name: hints[name] for name in order}
        return group

    return decorate


def _panel(hint: Any) -> str | None:
    return hint.__metadata__[0].rich_help_panel


def _annotation(keyword: Keyword) -> Any:
    """The type of an option with its help, for typer."""
    flag = f"--{keyword.name.replace('_', '-')}"
    short = SHORT_NAMES.get(keyword.name)
    about = option(
        HELP.get(keyword.name) or keyword.meaning(unmarked=DEFAULT),
        *([flag, short] if short else []),
        default=_default_text(keyword),
        panel=PANELS.get(keyword.name, SOLVER if DEFAULT in keyword.defaults else OTHERS),
    )
    return Annotated[_word(keyword.annotation) | None, about]


def _word(annotation: object) -> Any:
    """The part of a type that a word on the command line can be."""
    parts = (annotation,) if get_origin(annotation) is Literal else get_args(annotation)
    return next(
        each for each in parts or (annotation,) if each in WORDS or get_origin(each) is Literal
    )


def _default_text(keyword: Keyword) -> str:
    """The defaults of all constructions, each once."""
    texts = [
        keyword.unset if value is None
        else {True: "yes", False: "no"}[value] if isinstance(value, bool)
        else f"{value:g}".replace("e-0", "e-") if isinstance(value, float)
        else str(value)
        for value in keyword.defaults.values()
    ]  # fmt: skip
    return ", ".join(dict.fromkeys(text for text in texts if text))


def given(**keywords: Any) -> dict[str, Any]:
    """Keywords that were given."""
    return {name: value for name, value in keywords.items() if value is not None}


@dataclass(frozen=True)
class Given:
    """Options of which some were given."""

    def given(self) -> dict[str, Any]:
        """Keywords that the user chose."""
        return given(**{each.name: getattr(self, each.name) for each in fields(self)})


MASS: Any = option("File with one mass per point.", default="ones", panel=COST, metavar="FILE")
N_JOBS: Any = option("Threads, or -1 for all cores.", default="-1", panel=SOLVER)


@dataclass(frozen=True)
@with_keywords("quadratic")
class SolverOptions(Given):
    """Keywords of :func:`otgraph.eps_path`."""

    mass: Annotated[str | None, MASS] = None
    n_jobs: Annotated[int | None, N_JOBS] = None


@dataclass(frozen=True)
@with_keywords(*CONSTRUCTIONS)
class GraphOptions(Given):
    """Which graph to build: a method, and every keyword of every method."""

    method: Annotated[Method | None, option("Kind of graph.", default=DEFAULT)] = None
    eps: Annotated[
        str | None,
        option(
            "Regularization, or scale of a kernel; quadratic takes this or --mean-degree, and "
            "chooses it if it is auto.",
            metavar=f"FLOAT|{AUTO}",
        ),
    ] = None
    mean_degree: Annotated[
        float | None,
        option(
            "quadratic: mean number of neighbors; finds eps.",
            default=f"{DEFAULT_MEAN_DEGREE} without --eps",
        ),
    ] = None
    mass: Annotated[str | None, MASS] = None
    u0: Annotated[
        str | None,
        option("Potentials to start from: a vector or a graph file.", panel=SOLVER, metavar="FILE"),
    ] = None
    n_jobs: Annotated[int | None, N_JOBS] = None
    dask: Annotated[
        str | None,
        option("Address of a Dask scheduler to compute on.", panel=SOLVER, metavar="ADDRESS"),
    ] = None
    block_rows: Annotated[int | None, option("Rows of a block on Dask.", panel=SOLVER)] = None

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
        return self.eps == AUTO


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
