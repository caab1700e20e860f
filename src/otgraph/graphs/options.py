"""The keywords of every construction: defaults, checks and meanings, written once.

A function, its estimator, the command line, AnnData and the cluster all read these classes. The
order of the fields is the order of the keywords.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from otgraph._validation import (
    check_choice,
    check_count,
    check_positive,
    check_power,
    check_seed,
)
from otgraph.costs import metric_name
from otgraph.costs.metrics import check_metric, is_precomputed

if TYPE_CHECKING:
    from otgraph.typing import RandomState

Metric: TypeAlias = str | Callable[..., float]
Search: TypeAlias = Literal["auto", "exact", "approximate"]
OnFailure: TypeAlias = Literal["warn", "raise"]
# A regularization, or "auto".
Eps: TypeAlias = float | Literal["auto"]
Symmetrize: TypeAlias = Literal["union", "average"]

# Used if neither `eps` nor `mean_degree` is given; the same number as in scanpy and UMAP.
DEFAULT_MEAN_DEGREE = 15
# Used for `min_degree` if the library chooses `eps`, at most half the mean degree: enough for
# methods that need a few neighbors, and few enough that the degree can still adapt.
DEFAULT_MIN_DEGREE = 4
# The value of `eps` that asks for a choice.
AUTO: Final = "auto"


def option(default: Any, meaning: str, check: Callable[[Any, str], Any] | None = None) -> Any:
    """A keyword: its default, its meaning in one line, and a function that checks it."""
    return field(default=default, metadata={"meaning": meaning, "check": check})


def one_of(choices: Any) -> Callable[[Any, str], Any]:
    """A check that a value is one of the choices."""
    return lambda value, name: check_choice(value, name, get_args(choices))


def optional(check: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """A check that also accepts None."""
    return lambda value, name: None if value is None else check(value, name)


def flag(value: Any, name: str) -> bool:
    """Any value as true or false."""
    return bool(value)


def metric_of(value: Any, name: str) -> Any:
    """A metric that the cost layer knows."""
    if not is_precomputed(value):
        check_metric(value)
    return value


@dataclass(frozen=True, kw_only=True)
class Options:
    """Keywords of a construction, checked by the constructor."""

    def __post_init__(self) -> None:
        """Replace every field by its checked value."""
        for each in fields(self):
            check = each.metadata["check"]
            if check is not None:
                object.__setattr__(self, each.name, check(getattr(self, each.name), each.name))

    def record(self) -> dict[str, Any]:
        """The keywords as plain values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        if "metric" in values:
            values["metric"] = metric_name(values["metric"])
        return values

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The keywords in order."""
        return tuple(each.name for each in fields(cls))


@dataclass(frozen=True, kw_only=True)
class CostOptions(Options):
    """Keywords that define the cost between two points."""

    metric: Metric = option(
        "euclidean",
        "euclidean, cosine, any metric of scikit-learn, a function, or precomputed.",
        metric_of,
    )
    power: float = option(2.0, "Power of the distance.", check_power)
    normalize: bool = option(True, "Divide costs by their mean, so that eps has no unit.", flag)


@dataclass(frozen=True, kw_only=True)
class QuadraticOptions(CostOptions):
    """Keywords of :func:`otgraph.quadratic_ot_graph`."""

    self_loops: bool = option(False, "Let points keep mass, as the paper does.", flag)
    min_degree: int | None = option(
        None, "Neighbors that every point has at least.", optional(partial(check_count, minimum=0))
    )
    connect: bool | None = option(None, "Join all connected components.", optional(flag))
    tol: float = option(1e-6, "Largest relative error of a row sum.", check_positive)
    search: Search = option("auto", "How candidate pairs are found.", one_of(Search))
    max_missing: float = option(
        0.05, "Share of missing pairs that an approximate search may leave.", check_positive
    )
    n_candidates: int | None = option(None, "First candidates per point.", optional(check_count))
    # Ten steps are usual. Hundreds are needed for tiny eps, where the plan is nearly a matching.
    max_iter: int = option(1000, "Limit of Newton steps.", check_count)
    on_failure: OnFailure = option("warn", "What to do if not converged.", one_of(OnFailure))
    random_state: RandomState = option(0, "Seed of the cells that speed up the search.", check_seed)


@dataclass(frozen=True, kw_only=True)
class EntropicOptions(CostOptions):
    """Keywords of :func:`otgraph.entropic_ot_graph`."""

    self_loops: bool = option(False, "Let points keep mass, as the paper does.", flag)
    tol: float = option(1e-6, "Largest relative error of a row sum.", check_positive)
    max_iter: int = option(1000, "Limit of passes.", check_count)
    on_failure: OnFailure = option("warn", "What to do if not converged.", one_of(OnFailure))


@dataclass(frozen=True, kw_only=True)
class KNNGaussianOptions(CostOptions):
    """Keywords of :func:`otgraph.knn_gaussian_graph`."""

    n_neighbors: int = option(15, "Neighbors that every point has at least.", check_count)
    eps: float | None = option(None, "Scale of the weights; none: equal.", optional(check_positive))
    include_self: bool = option(False, "A point is its own first neighbor.", flag)
    symmetrize: Symmetrize = option("union", "Edges found from one side.", one_of(Symmetrize))


@dataclass(frozen=True, kw_only=True)
class GaussianOptions(CostOptions):
    """Keywords of :func:`otgraph.gaussian_graph`."""

    eps: float = option(1.0, "Scale of the weights.", check_positive)
    self_loops: bool = option(False, "Keep the ones on the diagonal.", flag)


@dataclass(frozen=True, kw_only=True)
class MAGICOptions(Options):
    """Keywords of :func:`otgraph.magic_graph`."""

    n_neighbors: int = option(5, "Neighbor that sets the bandwidth.", check_count)
    decay: float = option(1.0, "Power in the kernel.", check_positive)
    knn_max: int | None = option(
        None, "Neighbors with a weight; 3 times as many by default.", optional(check_count)
    )
    thresh: float = option(1e-4, "Smallest weight kept.", check_positive)
    metric: Metric = option(
        "euclidean",
        "euclidean, cosine, any metric of scikit-learn, a function, or precomputed.",
        metric_of,
    )
    n_pca: int | None = option(None, "Principal components to use.", optional(check_count))
    random_state: RandomState = option(0, "Seed of the decomposition.", check_seed)
