"""The neighborhood graph of cells, in place of ``scanpy.pp.neighbors``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from otgraph._validation import check_choice
from otgraph.exceptions import argument_error
from otgraph.graphs.constructions import ALL_OPTIONS, CONSTRUCTIONS, DEFAULT
from otgraph.graphs.keywords import refuse_unknown, shows
from otgraph.graphs.masses import balanced_mass
from otgraph.singlecell._adata import check_key, entry, target
from otgraph.singlecell._messages import CONSEQUENCE, advised, logged
from otgraph.singlecell._representation import representation
from otgraph.singlecell._slots import Keys, write_slots

if TYPE_CHECKING:
    from typing import Unpack

    from anndata import AnnData
    from numpy.typing import ArrayLike

    from otgraph.graphs import Graph
    from otgraph.graphs.options import AnyKeywords, Eps
    from otgraph.typing import Array, Points

__all__ = ["neighbors"]


def __dir__() -> list[str]:
    return __all__


METHODS = tuple(CONSTRUCTIONS)


@shows(ALL_OPTIONS)
def neighbors(
    adata: AnnData,
    n_neighbors: float | None = None,
    n_pcs: int | None = None,
    *,
    eps: Eps | None = None,
    mean_degree: float | None = None,
    use_rep: str | None = None,
    method: str = DEFAULT,
    key_added: str | None = None,
    copy: bool = False,
    mass: ArrayLike | str | None = None,
    balance: str | None = None,
    u0: ArrayLike | None = None,
    progress: bool = False,
    n_jobs: int | None = -1,
    **options: Unpack[AnyKeywords],
) -> AnnData | None:
    """Graph of the cells, stored where scanpy's tools expect it.

    Use it instead of ``sc.pp.neighbors(adata)``. ``sc.tl.umap``, ``leiden``, ``diffmap``, ``dpt``,
    ``paga`` and ``draw_graph`` work as before.

    Parameters
    ----------
    adata
        Annotated data, normalized as for scanpy.
    n_neighbors
        What it means in scanpy: the size of the neighborhoods. For ``"quadratic"`` and
        ``"multiscale"`` it is `mean_degree`, for ``"knn"`` and ``"magic"`` their own keyword of
        this name.
    eps
        Regularization; larger values spread the mass over more neighbors. ``"auto"`` chooses the
        value whose graph predicts unseen features best (``method="quadratic"`` only).
    mean_degree
        Wanted mean number of neighbors; cells get more or fewer according to the density around
        them. 15 by default, if `eps` is not given either.
    n_pcs, use_rep
        Points of the cells, by scanpy's rules; see :func:`otgraph.singlecell.representation`.
    method
        ``"quadratic"``: the quadratic optimal transport graph. ``"multiscale"``: the mean of
        several, for several `eps` or `mean_degree`. For comparison ``"entropic"``,
        ``"knn"``, ``"gaussian"``, ``"magic"``.
    key_added
        Name in ``adata.uns`` and prefix in ``adata.obsp``. None means scanpy's default names;
        otherwise scanpy's functions need ``neighbors_key``. An existing graph is replaced.
    copy
        Return a copy instead of writing to `adata`; of an object on disk, a copy in memory.
    mass
        Wanted row sums, ones by default: one per cell, or the name of a column of ``adata.obs``,
        such as the number of cells in a metacell.
    balance
        Name of a column of ``adata.obs`` whose groups get the same total mass, such as
        ``"batch"``; instead of `mass`. See :func:`otgraph.balanced_mass`.
    u0, progress, n_jobs
        As in :func:`otgraph.quadratic_ot_graph`. This function, :func:`otgraph.entropic_ot_graph`,
        :func:`otgraph.multiscale_graph`, :func:`otgraph.knn_gaussian_graph`,
        :func:`otgraph.gaussian_graph` and :func:`otgraph.magic_graph` say more about the keywords
        below, too. Keywords that the construction does not have are an error; None stands for its
        default.
    **options

    Returns
    -------
    None, or the copy. :func:`otgraph.singlecell.write_slots` lists what is written.

    References
    ----------
    T. Matsumoto, S. Zhang and G. Schiebinger (2022), *Beyond kNN: Adaptive, Sparse Neighborhood
    Graphs via Optimal Transport*, https://arxiv.org/abs/2208.00604.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> adata = anndata.AnnData(otgraph.datasets.noisy_spiral(n=200).X)
    >>> ogs.pp.neighbors(adata, mean_degree=10, use_rep="X")
    >>> adata.uns["neighbors"]["params"]["status"]
    'exact'
    """
    check_choice(method, "method", METHODS)
    keys = Keys.of(key_added)
    check_key(keys.uns)  # before the graph is built
    adata = target(adata, copy=copy)
    masses = _masses(adata, mass, balance)
    chosen = representation(adata, use_rep, n_pcs)
    metric = options.get("metric")
    with logged(f"computing {method} graph on {chosen.use_rep!r}", *keys.described()):
        with advised(CONSEQUENCE):
            graph = build_graph(
                chosen.points, method, n_neighbors=n_neighbors, eps=eps,
                mean_degree=mean_degree, mass=masses, u0=u0, progress=progress or None,
                n_jobs=n_jobs, **options,
            )  # fmt: skip
        write_slots(
            adata, graph, key_added, use_rep=chosen.use_rep, n_pcs=chosen.n_pcs,
            metric=metric if callable(metric) else None,
        )  # fmt: skip
    return adata if copy else None


def _masses(adata: AnnData, mass: ArrayLike | str | None, balance: str | None) -> ArrayLike | None:
    """Masses from columns of the cells."""
    if balance is not None:
        if mass is not None:
            msg = "Pass one of `mass` and `balance`, got both."
            raise argument_error(TypeError, "balance", msg)
        return balanced_mass(_column(adata, balance, "balance"))
    return _column(adata, mass, "mass") if isinstance(mass, str) else mass


def _column(adata: AnnData, name: str, argument: str) -> Array:
    return entry(adata.obs, name, argument, "a column of `adata.obs`").to_numpy()


def build_graph(
    points: Points, method: str, *, n_jobs: int | None = -1, **keywords: object
) -> Graph:
    """Graph by the name of its construction; keywords that are None count as not given."""
    build = CONSTRUCTIONS[check_choice(method, "method", METHODS)].build
    keywords = {name: value for name, value in keywords.items() if value is not None}
    if method in ("quadratic", "multiscale") and "n_neighbors" in keywords:
        for other in ("eps", "mean_degree"):
            if other in keywords:
                msg = f"Pass one of `n_neighbors` and `{other}`, got both."
                raise argument_error(TypeError, "n_neighbors", msg)
        keywords["mean_degree"] = keywords.pop("n_neighbors")
    _, *known = inspect.signature(build).parameters  # without the points
    hint = ""
    if "n_neighbors" in keywords:
        hint = " All cells are neighbors here; method='quadratic', 'multiscale', 'knn' "
        hint += "and 'magic' take it."
    refuse_unknown(keywords, known, f"method={method!r}", hint)
    if keywords.get("metric") == "precomputed":
        msg = "`metric='precomputed'` is not supported here; use otgraph.quadratic_ot_graph and "
        msg += "otgraph.singlecell.write_slots for costs of your own."
        raise argument_error(ValueError, "metric", msg)
    return build(points, n_jobs=n_jobs, **keywords)
