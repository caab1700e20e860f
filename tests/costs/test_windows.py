"""Searches in windows of a few groups find together what one process finds, bit for bit."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from otgraph._parallel import Workers
from otgraph.costs.pairs import symmetric_pairs
from otgraph.costs.points import EuclideanCost
from otgraph.costs.scaling import scaled_points
from otgraph.costs.single import SinglePoints
from otgraph.costs.sizes import SearchSizes
from otgraph.costs.windows import NEAR_WAYS, CellLists, Frame, Group, Window, cells_near, met_cells

N, GROUPS = 900, 4
SIZES = SearchSizes(
    fewest_cell_points=100, neighbor_cells=4, nearest_cells=4, screen_cells=6, block_rows=64
)


@pytest.fixture(params=[(2.0, np.float64), (1.5, np.float64), (2.0, np.float32)])
def parts(request, rng):
    """A cost in one process, the frame of its points, and the points in groups."""
    power, kind = request.param
    raw = (3.0 + rng.normal(size=(N, 6)) / np.arange(1, 7)).astype(np.float32)
    scaled = scaled_points(raw.astype(kind), metric="euclidean", power=power, normalize=True)
    cost = EuclideanCost(scaled, workers=Workers(1), sizes=SIZES)
    frame = Frame(
        scaled.placement, scaled.power, scaled.factor, scaled.scale, scaled.identical, SIZES,
        isinstance(scaled.points, SinglePoints),
    )  # fmt: skip
    blocks = [first for first, _ in cost._cells.blocks(SIZES.block_rows)]
    bounds = [*blocks[:: len(blocks) // GROUPS], cost._cells.n_cells]
    groups = []
    for first, last in pairwise(bounds):
        offsets = cost._cells.offsets[first : last + 1]
        groups.append(
            Group(
                raw[cost.order[offsets[0] : offsets[-1]]], np.arange(first, last), offsets[:-1],
                offsets - offsets[0], cost._cells.centers[first:last],
                cost._cells.radii[first:last],
            )
        )  # fmt: skip
    assert len(groups) >= GROUPS
    return cost, frame, groups


def assert_same(chunks, expected):
    found = symmetric_pairs(N, list(chunks), Workers(1))
    for name in ("indptr", "indices", "costs"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def screened_near(frame, groups, upper, way, partners, rows=None):
    """Each group with all before it, or with all, in one window."""
    for g, target in enumerate(groups):
        some = groups if rows is not None else groups[: g + 1]
        own = None if rows is None else [rows[np.isin(rows, each.members)] for each in some]
        cells = cells_near(some, target, own, partners)
        window = Window(frame, some, cells)
        assert len(window.members) < N  # not all cells are near
        found = window.screen_near(target, upper[window.members], rows, way, partners)
        yield from found[1]


def screened(frame, groups, upper, way, rows=None):
    for g, target in enumerate(groups):
        for other in groups if rows is not None else groups[: g + 1]:
            mine = None
            if rows is not None:
                mine = rows[np.isin(rows, other.members)]
                if not len(mine):
                    continue
            bounds = (upper[target.members], upper[other.members])
            left, right = met_cells(frame, target, other, *bounds, mine, way)
            if len(left.cells) and len(right.cells):
                both = sorted([left, right], key=lambda group: group.starts[0])
                window = Window(frame, [left] if left is right else both)
                yield from window.screen(left, right, upper[window.members], mine, way)[1]


@pytest.mark.parametrize("way", ["near", "chosen", "cells", "plain"])
@pytest.mark.parametrize("some", [False, True])
def test_screens(parts, rng, way, some):
    cost, frame, groups = parts
    cost.exact = way not in NEAR_WAYS
    if way == "chosen":
        cost.sizes = replace(SIZES, screen_cells=2, many_cells=1)
        cost.searched_cells = 2
        assert cost.chooses
    rows = np.sort(rng.choice(N, 40, replace=False)) if some else None
    upper = np.quantile(cost.sample(np.arange(50)), 0.02) * rng.uniform(0.5, 1.0, size=N)
    if way in NEAR_WAYS:
        partners = CellLists.of(range(cost._cells.n_cells), cost.partner_cells())
        found = screened_near(frame, groups, upper, way, partners, rows)
    else:
        found = screened(frame, groups, upper, way, rows)
    expected = cost.screen(upper, rows).pairs
    assert expected.n_pairs > 100
    assert_same(found, expected)


def test_some_cells_of_a_group(parts):
    _, frame, groups = parts
    some = groups[1].only(groups[1].cells[1:3])
    assert 0 < sys.getsizeof(some) < sys.getsizeof(groups[1])
    here = np.isin(groups[1].members, some.members)
    np.testing.assert_array_equal(some.points, groups[1].points[here])
    placed = frame.own(some.placed(frame).points)
    np.testing.assert_array_equal(placed[:], frame.own(frame.held(some.points))[:])


def test_neighbors_in_near_cells(parts):
    cost, frame, groups = parts
    near, n_chosen = cost._nearest_cells(SIZES.neighbor_cells, 7), SIZES.neighbor_cells
    chunks = []
    for group in groups:
        needed = CellLists.of(group.cells, [near[b] for b in group.cells])
        cells = np.unique(np.concatenate([group.cells, needed.others]))
        pieces = [each.only(np.intersect1d(each.cells, cells)) for each in groups]
        window = Window(frame, [piece for piece in pieces if len(piece.cells)])
        chunks += window.neighbors(7, n_chosen, needed)[1]
    work = cost.neighbor_tasks(enumerate(near))
    expected = [pair for task in work for pair in cost.neighbors_of_cell(7, n_chosen, task)[1]]
    assert_same(chunks, symmetric_pairs(N, expected, Workers(1)))


def test_neighbors_among_all(parts):
    cost, frame, groups = parts
    chunks = []
    for target in groups:
        lists = None
        for other in groups:
            both = sorted([target, other], key=lambda group: group.starts[0])
            window = Window(frame, [target] if other is target else both)
            lists = window.nearest(7, target, other, lists)
        chunks += Window(frame, [target]).pairs_of(target, lists)
    expected = [
        pair for task in cost._all_columns() for pair in cost._neighbors_among_all(7, task)[1]
    ]
    assert_same(chunks, symmetric_pairs(N, expected, Workers(1)))


def test_sampled_costs(parts):
    cost, frame, groups = parts
    rows = np.array([3, 400, 899])
    costs = [
        costs for group in groups for _, costs in Window(frame, [group]).costs_from(cost.own[rows])
    ]
    assert [each.shape[1] for each in costs] == [b - a for a, b in cost.column_blocks()]
    np.testing.assert_array_equal(np.concatenate(costs, axis=1), cost.sample(rows))


def test_partners_in_near_cells(parts):
    cost, frame, groups = parts
    rows = np.array([3, 4, 400, 899])
    near = cost._cells.nearest(SIZES.nearest_cells, n_points=15)
    near = CellLists.of(range(len(near)), near)
    found = Window(frame, groups).partners(rows, 7, near)
    for mine, expected in zip(found, cost._partners_in_near_cells(rows, 7), strict=True):
        np.testing.assert_array_equal(mine, expected)
