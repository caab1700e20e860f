"""Options that several commands share: data classes whose fields become options.

Keywords of constructions are not listed here: their options are made from the classes in
``graphs/options.py``. None means that an option was not given. Defaults are those of the functions
that are called.
"""

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

import typer
from typer.models import ArgumentInfo, OptionInfo

from otgraph.graphs.constructions import ALL_OPTIONS, CONSTRUCTIONS, DEFAULT
from otgraph.graphs.keywords import Keyword, merged
from otgraph.graphs.options import AUTO, DEFAULT_MEAN_DEGREE, WITHIN_ONE_CLOUD
from otgraph.typing import Keywords

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
# Headings of options that are made from keywords. Others are listed under the solver if the
# default construction has them, and else under other methods.
PANELS = {
    "metric": COST,
    "power": COST,
    "normalize": COST,
    "self_loops": COST,
    "collapse": COST,
    "min_degree": None,
    "connect": None,
    "outlier_cost": None,
}
SHORT_NAMES = {"power": "-p", "n_neighbors": "-k"}
NUMBER_OR_AUTO = ("outlier_cost",)  # keywords that take a word beside numbers
# Help where a file and an exit code take the place of an object and an exception.
HELP = {
    "metric": "euclidean, cosine, any of scikit-learn, or precomputed.",
    "on_failure": "Not converged: warn writes the result and exits with 3, raise writes nothing "
    "and exits with 1.",
}
# What happens to missing values.
Missing: TypeAlias = Literal["error", "drop-rows", "mean"]
# What a word on the command line can become.
WORDS = (bool, int, float, str)


def option(
    help: str, *names: str, default: str | None = None, **settings: str | None
) -> OptionInfo:
    """A typer option that is None if not given; its help shows the default."""
    info: OptionInfo = typer.Option(*names, help=help, show_default=default or False, **settings)
    return info


def argument(metavar: str, help: str) -> ArgumentInfo:
    """A typer argument."""
    info: ArgumentInfo = typer.Argument(metavar=metavar, help=help, show_default=False)
    return info


def output(help: str) -> OptionInfo:
    """The option that names the file to write."""
    return option(help, "-o", "--output")


reads, solves, runs = (
    partial(option, rich_help_panel=panel) for panel in (READING, SOLVER, RUNNING)
)
# Arguments and options that several commands have.
PointsFile: TypeAlias = Annotated[
    str,
    argument(
        "POINTS",
        "File: .csv, .tsv, .txt, .dat, .xlsx, .parquet, .npy, .npz, .mtx, .h5ad, or - for CSV on "
        "standard input.",
    ),
]
PointsOrGraph: TypeAlias = Annotated[
    str, argument("POINTS_OR_GRAPH", "Graph (.otg), or points as for `otgraph graph`.")
]
Weights: TypeAlias = Annotated[
    bool, reads("The file holds weights of a graph, not points.", "--weights")
]
Labels: TypeAlias = Annotated[
    str | None, reads("Table of labels; empty or -1 is unknown.", metavar="FILE")
]
LabelColumn: TypeAlias = Annotated[
    str | None,
    reads("Column of the points, or of obs, with labels; it is not a feature.", metavar="NAME"),
]
Picture: TypeAlias = Annotated[str | None, option("Picture to draw in addition.", metavar="FILE")]
EpsValues: TypeAlias = Annotated[
    list[str] | None, option("Values, with commas between them.", metavar="VALUES")
]
EigenTol: TypeAlias = Annotated[float | None, option("Accuracy of the eigenvectors.")]
MaxRestarts: TypeAlias = Annotated[int | None, option("Limit of Lanczos restarts.")]
Mass: TypeAlias = Annotated[
    str | None,
    option("File with one mass per point.", default="ones", rich_help_panel=COST, metavar="FILE"),
]
NJobs: TypeAlias = Annotated[int | None, solves("Threads, or -1 for all cores.", default="-1")]


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file of points."""

    columns: Annotated[
        list[str] | None,
        reads("Columns to use, by name or number; commas between them.", metavar="NAMES"),
    ] = None
    drop: Annotated[list[str] | None, reads("Columns to leave out.", metavar="NAMES")] = None
    header: Annotated[
        bool | None, reads("The first line of a text file holds names.", default="detected")
    ] = None
    row_names: Annotated[
        bool | None, reads("The first column of a table holds names.", default="detected")
    ] = None
    transpose: Annotated[
        bool, reads("Points are columns, as in genes by cells.", "--transpose")
    ] = False
    missing: Annotated[
        Missing | None,
        reads(
            "Missing values: leave out their rows, or take the mean of the column.",
            default="error",
        ),
    ] = None
    standardize: Annotated[
        bool | None, reads("Give each column mean 0 and variance 1.", default="no, with a warning")
    ] = None
    pca: Annotated[int | None, reads("Principal components to use instead of the columns.")] = None
    key: Annotated[str | None, reads("Array of several in an .npz, or sheet of an .xlsx.")] = None
    use_rep: Annotated[
        str | None, reads("X or a key of obsm in .h5ad.", default="X_pca; X up to 50 genes")
    ] = None


def with_keywords(*constructions: str, without: Collection[str] = ()) -> Callable[[Class], Class]:
    """Add an option for each keyword of these constructions that the class does not have.

    They are in the order of the help: by heading, where those of the command line alone come last.
    """

    def decorate(group: Class) -> Class:
        own = group.__annotations__
        made = {
            each.name: _annotation(each)
            for each in merged({name: ALL_OPTIONS[name] for name in constructions}).values()
            if each.name not in own and each.name not in without
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
        rich_help_panel=PANELS.get(keyword.name, SOLVER if DEFAULT in keyword.defaults else OTHERS),
    )
    if keyword.name in NUMBER_OR_AUTO:
        about.parser, about.metavar = _number_or_word, f"FLOAT|{AUTO}"
    return Annotated[_word(keyword.annotation) | None, about]


def _number_or_word(word: str) -> Any:
    """A number if it is one; the option's check refuses other words."""
    try:
        return float(word)
    except ValueError:
        return word


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


def given(**keywords: object) -> Keywords:
    """Keywords that were given."""
    return {name: value for name, value in keywords.items() if value is not None}


@dataclass(frozen=True)
class Given:
    """Options of which some were given."""

    def given(self) -> Keywords:
        """Keywords that the user chose."""
        return given(**{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True)
@with_keywords("quadratic")
class SolverOptions(Given):
    """Keywords of :func:`otgraph.eps_path`."""

    mass: Mass = None
    n_jobs: NJobs = None


@dataclass(frozen=True)
@with_keywords(*CONSTRUCTIONS)
class GraphOptions(Given):
    """Which graph to build: a method, and every keyword of every method."""

    method: Annotated[Method | None, option("Kind of graph.", default=DEFAULT)] = None
    eps: Annotated[
        str | None,
        option(
            "Regularization, or scale of a kernel; quadratic takes this or --mean-degree, and "
            "chooses it if it is auto; multiscale takes several with commas.",
            metavar=f"FLOAT|{AUTO}",
        ),
    ] = None
    mean_degree: Annotated[
        str | None,
        option(
            "quadratic: mean number of neighbors; finds eps. multiscale: that of the widest plan, "
            "or several with commas.",
            metavar="FLOAT",
            default=f"{DEFAULT_MEAN_DEGREE} without --eps",
        ),
    ] = None
    mass: Mass = None
    u0: Annotated[
        str | None,
        solves("Potentials to start from: a vector or a graph file.", metavar="FILE"),
    ] = None
    n_jobs: NJobs = None
    dask: Annotated[
        str | None, solves("Address of a Dask scheduler to compute on.", metavar="ADDRESS")
    ] = None
    block_rows: Annotated[int | None, solves("Rows of a block on Dask.")] = None

    def given(self) -> Keywords:
        """Keywords that the user chose, as plain values."""
        keywords = super().given()
        if self.eps is not None and not self.chooses_eps:
            keywords["eps"] = _numbers(self.eps, "--eps must be a positive number or auto")
        if self.mean_degree is not None:
            what = "--mean-degree must be a positive number"
            keywords["mean_degree"] = _numbers(self.mean_degree, what)
        return keywords

    @property
    def chooses_eps(self) -> bool:
        """Whether eps is to be chosen."""
        return self.eps == AUTO


def _numbers(text: str, expected: str) -> float | list[float]:
    """A number, or several with commas between them."""
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError as error:
        msg = f"{expected}, got {text!r}."
        raise ValueError(msg) from error
    return values if len(values) > 1 else values[0]


@dataclass(frozen=True)
@with_keywords(DEFAULT, without=WITHIN_ONE_CLOUD)
class PlanOptions(Given):
    """Keywords of :func:`otgraph.transport_graph`."""

    eps: Annotated[float | None, option("Regularization; this or --mean-degree.")] = None
    mean_degree: Annotated[
        float | None,
        option(
            "Mean number of partners; finds eps.", default=f"{DEFAULT_MEAN_DEGREE} without --eps"
        ),
    ] = None
    n_jobs: NJobs = None


@dataclass(frozen=True)
class RunOptions:
    """What a command prints, and whether it may replace files."""

    force: Annotated[bool, runs("Replace files that exist.", "--force")] = False
    json: Annotated[bool, runs("Report as one JSON object.", "--json")] = False
    verbose: Annotated[
        bool | None,
        runs(
            "Full report, or none.",
            "--verbose/--quiet",
            "-v/-q",
            default="full on a terminal, one line in a pipe",
        ),
    ] = None
    progress: Annotated[bool | None, runs("Progress bars.", default="on a terminal")] = None
    debug: Annotated[bool, runs("Show tracebacks.", "--debug")] = False

    @property
    def shows_progress(self) -> bool:
        """Progress bars on a terminal, unless the user chose otherwise."""
        if self.progress is not None:
            return self.progress
        return sys.stderr.isatty() and not self.json and self.verbose is not False
