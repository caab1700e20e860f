"""The keywords of every construction: defaults, checks and meanings, written once.

A function, its estimator, the command line, AnnData and the cluster all read these classes. The
order of the fields is the order of the keywords.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypedDict

from otgraph.graphs.keywords import (
    Options,
    count,
    flag,
    known_metric,
    one_of,
    option,
    optional,
    or_word,
    positive,
    power_of_distance,
    seed,
    share,
)
from otgraph.typing import (  # noqa: TC001  # the command line reads annotations
    Keywords,
    Metric,
    RandomState,
)

Search: TypeAlias = Literal["auto", "exact", "approximate"]
OnFailure: TypeAlias = Literal["warn", "raise"]
# A regularization, or "auto".
Eps: TypeAlias = float | Literal["auto"]
# What a point without neighbors would cost, "auto", or None if all mass must be shared.
OutlierCost: TypeAlias = float | Literal["auto"] | None
Symmetrize: TypeAlias = Literal["union", "average"]

# Used if neither `eps` nor `mean_degree` is given; the same number as in scanpy and UMAP.
DEFAULT_MEAN_DEGREE = 15
# Used for `min_degree` if the library chooses `eps`, at most half the mean degree: enough for
# methods that need a few neighbors, and few enough that the degree can still adapt.
DEFAULT_MIN_DEGREE = 4
# Keywords that are used within one cloud only, not between two.
WITHIN_ONE_CLOUD = ("self_loops", "collapse", "min_degree", "connect", "n_candidates")
# The value of `eps` that asks for a choice.
AUTO: Final = "auto"


@dataclass(frozen=True, kw_only=True)
class CostOptions(Options):
    """Keywords that define the cost between two points."""

    metric: Metric = option(
        "euclidean",
        "euclidean, cosine, any metric of scikit-learn, a function, or precomputed.",
        known_metric,
    )
    power: float = option(2.0, "Power of the distance.", power_of_distance)
    normalize: bool = option(True, "Divide costs by their mean, so that eps has no unit.", flag)

    def cost(self) -> Keywords:
        """These keywords, for the functions that make costs."""
        return {"metric": self.metric, "power": self.power, "normalize": self.normalize}


@dataclass(frozen=True, kw_only=True)
class QuadraticOptions(CostOptions):
    """Keywords of :func:`otgraph.quadratic_ot_graph`."""

    self_loops: bool = option(False, "Let points keep mass, as the paper does.", flag)
    collapse: bool = option(
        False, "Make identical rows one point that has the mass of all of them.", flag
    )
    min_degree: int | None = option(
        None,
        "Neighbors that every point has at least; small components are joined, too.",
        optional(count(minimum=0)),
        unset=f"{DEFAULT_MIN_DEGREE}; 0 with eps",
    )
    connect: bool | None = option(
        None, "Join all connected components.", optional(flag), unset="no, with a warning"
    )
    outlier_cost: OutlierCost = option(
        None,
        "Largest cost of an edge, beyond which points drop out; auto chooses it.",
        optional(or_word(positive, AUTO)),
        unset="no point drops out",
    )
    tol: float = option(1e-6, "Largest relative error of a row sum.", positive)
    search: Search = option("auto", "How candidate pairs are found.", one_of(Search))
    max_missing: float = option(
        0.05, "Share of missing pairs that an approximate search may leave.", positive
    )
    n_candidates: int | None = option(None, "First candidates per point.", optional(count()))
    # Ten steps are usual. Hundreds are needed for tiny eps, where the plan is nearly a matching.
    max_iter: int = option(1000, "Limit of Newton steps.", count())
    on_failure: OnFailure = option("warn", "What to do if not converged.", one_of(OnFailure))
    random_state: RandomState = option(0, "Seed of the cells that speed up the search.", seed)

    def __post_init__(self) -> None:
        """Check every field, and that lonely points are not to be dropped and connected."""
        super().__post_init__()
        for name in ("min_degree", "connect"):
            if self.outlier_cost is not None and (value := getattr(self, name)):
                from otgraph.exceptions import invalid

                msg = (
                    f"lets lonely points drop out, and `{name}`={value!r} gives them neighbors: "
                    "pass one of the two."
                )
                raise invalid("outlier_cost", msg)


class QuadraticKeywords(TypedDict, total=False):
    """The same for type checkers and editors: ``**options: Unpack[QuadraticKeywords]``."""

    metric: Metric
    power: float
    normalize: bool
    self_loops: bool
    collapse: bool
    min_degree: int | None
    connect: bool | None
    outlier_cost: OutlierCost
    tol: float
    search: Search
    max_missing: float
    n_candidates: int | None
    max_iter: int
    on_failure: OnFailure
    random_state: RandomState


@dataclass(frozen=True, kw_only=True)
class EntropicOptions(CostOptions):
    """Keywords of :func:`otgraph.entropic_ot_graph`."""

    self_loops: bool = option(False, "Let points keep mass, as the paper does.", flag)
    max_error: float | None = option(
        None,
        "Share of a row's weight that may be left out.",
        optional(share),
        unset="1e-6 above 10,000 points",
    )
    tol: float = option(1e-6, "Largest relative error of a row sum.", positive)
    max_iter: int = option(1000, "Limit of passes.", count())
    on_failure: OnFailure = option("warn", "What to do if not converged.", one_of(OnFailure))


@dataclass(frozen=True, kw_only=True)
class KNNGaussianOptions(CostOptions):
    """Keywords of :func:`otgraph.knn_gaussian_graph`."""

    n_neighbors: int = option(15, "Neighbors that every point has at least.", count())
    eps: float | None = option(
        None, "Scale of the weights; none: equal weights.", optional(positive)
    )
    include_self: bool = option(False, "A point is its own first neighbor.", flag)
    symmetrize: Symmetrize = option(
        "union", "Weight of edges found from one side only.", one_of(Symmetrize)
    )


@dataclass(frozen=True, kw_only=True)
class GaussianOptions(CostOptions):
    """Keywords of :func:`otgraph.gaussian_graph`."""

    eps: float = option(1.0, "Scale of the weights.", positive)
    self_loops: bool = option(False, "Keep the ones on the diagonal.", flag)
    max_error: float | None = option(
        None,
        "Share of a row's weight that may be left out.",
        optional(share),
        unset="1e-6 above 10,000 points",
    )


@dataclass(frozen=True, kw_only=True)
class MAGICOptions(Options):
    """Keywords of :func:`otgraph.magic_graph`."""

    n_neighbors: int = option(5, "Neighbor that sets the bandwidth.", count())
    decay: float = option(1.0, "Power in the kernel.", positive)
    knn_max: int | None = option(
        None, "Most neighbors with a weight.", optional(count()), unset="3 times as many"
    )
    thresh: float = option(1e-4, "Smallest weight kept.", positive)
    metric: Metric = option(
        "euclidean",
        "euclidean, cosine, any metric of scikit-learn, a function, or precomputed.",
        known_metric,
    )
    n_pca: int | None = option(
        None, "Principal components to use.", optional(count()), unset="none"
    )
    random_state: RandomState = option(0, "Seed of the decomposition.", seed)


class AnyKeywords(QuadraticKeywords, total=False):
    """Keywords of all constructions, for functions that take the name of one.

    ``eps`` and ``n_neighbors`` are arguments of their own there.
    """

    max_error: float | None
    include_self: bool
    symmetrize: Symmetrize
    decay: float
    knn_max: int | None
    thresh: float
    n_pca: int | None
