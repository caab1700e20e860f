"""What a cost with cells decides from the cells alone, wherever its points are."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from otgraph.costs.base import Cost

if TYPE_CHECKING:
    from otgraph.costs.partition import Partition
    from otgraph.costs.sizes import SearchSizes
    from otgraph.typing import FloatArray, LongArray

# Factor on the searched cells if a search missed too many pairs, or where each point looks only
# into those that it is nearest to.
MORE_CELLS = 3
NEIGHBOR_GROWTH = 2  # the same for cells of neighbors, of which too many cost more than too few
RECALL_ROWS = 32  # sample size for the recall of the neighbor search in near cells
# With a smaller recall, more cells are searched, and in the end all points. Between 0.6 and 0.8 the
# search takes as much more as the first screen takes less.
MIN_RECALL = 0.6
# Share of all cells up to which more of them are searched; beyond it all points are compared. Plain
# products of large blocks are faster per pair, and a task on a cluster gets such blocks one after
# the other, but all near cells at once.
LARGE_PART = 0.05
# Factor on the number of neighbors where all points are compared. The comparison is most of the
# work: three times as many neighbors take a fifth more time.
HUB_NEIGHBORS = 3


class InCells(Cost):
    """A cost whose points are in cells; ``searched_cells`` per cell, in an approximate screen."""

    sizes: SearchSizes
    searched_cells: int
    _cells: Partition

    @abstractmethod
    def _surviving_share(self, upper: FloatArray) -> float:
        """Estimated share of the (point, cell) combinations that an exact screen looks into."""

    @abstractmethod
    def _points_of(self, rows: LongArray) -> FloatArray:
        """Some points, scaled and centered like the cells."""

    def decide(self, upper: FloatArray) -> bool:
        """Whether screens cover all pairs from now on.

        This defines search="auto": exact, unless a screen with this bound would compute too many
        pairs. An approximate search becomes exact if it is hardly cheaper, or if it was widened
        until it computes as many pairs.
        """
        if self.exact or self._approximate_is_no_cheaper():
            self.exact = True
            return True
        share = self._surviving_share(upper)
        widened = self.searched_cells > self.sizes.screen_cells
        if self.exact is None:
            self.exact = share * self.n_pairs <= self.sizes.auto_pairs_per_point * self.n
        elif widened and self._near_share() >= share:
            self.exact = True
        return self.exact

    def widen(self) -> bool:
        """Search more cells per cell; returns False if all pairs are covered already."""
        if self.exact:
            return False
        self.searched_cells *= MORE_CELLS
        return True

    @property
    def chooses(self) -> bool:
        """Whether points of an approximate screen choose among more cells than they search."""
        widened = self.searched_cells > self.sizes.screen_cells
        return self._cells.n_cells > self.sizes.many_cells and not widened

    def partner_cells(self) -> list[LongArray]:
        """The cells in which an approximate screen looks for pairs of each cell."""
        return self._cells.partners(self.searched_cells * (MORE_CELLS if self.chooses else 1))

    def _near_share(self) -> float:
        """Share of all pairs in cells that an approximate screen looks into, from both ends."""
        return 2.0 * self.searched_cells / self._cells.n_cells

    def _approximate_is_no_cheaper(self) -> bool:
        """Whether near cells hold a large part of all pairs."""
        return self._cells.n_cells == 1 or self._near_share() >= self.sizes.near_share

    def _near_cells(self, k: int) -> tuple[list[LongArray], int] | None:
        """The cells near each cell, and in how many of them a point looks for its k nearest ones.

        None means that all points are compared. More cells are searched where these miss too many
        neighbors (wide clusters), and all where they would be a large part (isotropic data in many
        dimensions). An approximate search takes the first ones.
        """
        cells, count = self._cells, self.sizes.neighbor_cells
        if cells.n_cells == 1:
            return None
        near = self._nearest_cells(count, k)
        if self.exact is False and not self._approximate_is_no_cheaper():
            return near, count
        owners = self._owners_of_nearest(k)
        while self._recall(owners, near, count) < MIN_RECALL:
            count *= NEIGHBOR_GROWTH
            if count > LARGE_PART * cells.n_cells:
                return None
            near = self._nearest_cells(count, k)
        return near, count

    def _nearest_cells(self, count: int, k: int) -> list[LongArray]:
        """The cells among which the points of each cell choose ``count``, nearest first."""
        return self._cells.nearest(MORE_CELLS * count, n_points=enough_points(k))

    def _recall(
        self, owners: dict[int, LongArray], near_cells: list[LongArray], count: int
    ) -> float:
        """Share of the nearest points of sampled points that are where these look for them."""
        cells = self._cells
        points = self._points_of(cells.offsets[list(owners)])
        shares = []
        for point, (b, of_nearest) in zip(points, owners.items(), strict=True):
            near = near_cells[b]
            squares = np.square(cells.centers[near] - point).sum(axis=1)
            chosen = near[np.argsort(squares, kind="stable")[:count]]
            shares.append(np.isin(of_nearest, chosen).mean())
        return float(np.mean(shares))

    def _neighbors_of_hubs(self, k: int) -> int:
        """Number of neighbors to search for among all points, where k are wanted.

        Near cells miss the neighbors of isotropic data in many dimensions, where some points are
        near to all others (hubs). Potentials of k candidates would be too high there, and the
        search would be repeated for more.
        """
        room = int(self.usable_bytes() / self.bytes_per_pair / self.n)
        return max(k, min(HUB_NEIGHBORS * k, room, self.n - 1))

    def _owners_of_nearest(self, k: int) -> dict[int, LongArray]:
        """For sampled cells, the cells in which the k nearest points of their first point are."""
        offsets = self._cells.offsets
        chosen = range(0, self._cells.n_cells, max(1, self._cells.n_cells // RECALL_ROWS))
        rows = offsets[list(chosen)]
        ends, nearest, _ = self._partners(rows, rows, np.arange(self.n), k, inside=False)
        owners = np.searchsorted(offsets, nearest, side="right") - 1
        of_rows = np.split(owners, np.searchsorted(ends, rows[1:]))
        return dict(zip(chosen, of_rows, strict=True))


def enough_points(k: int) -> int:
    """Points that the cells in which k nearest ones are looked for must have together."""
    return 2 * k + 1
