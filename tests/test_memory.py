"""The memory that may be taken: what is free, within the limits of containers and process."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import otgraph
from otgraph._memory import available_bytes, give_back_pages
from otgraph._parallel import Workers
from otgraph.costs import as_cost, base
from otgraph.costs.search import SearchedCost
from otgraph.exceptions import MemoryLimitError
from otgraph.graphs import transport
from otgraph.solvers import room
from otgraph.solvers.screening import Screener

MB = 1 << 20
FREE = 8000 * MB


@pytest.fixture
def system(tmp_path):
    """A machine with free memory and no limits; writes further files."""

    def write(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    write("proc/meminfo", f"MemTotal: 99999999 kB\nMemAvailable: {FREE // 1024} kB")
    write.root = tmp_path
    return write


def version_2(write, folder, limit, used, cache=0):
    write(f"sys/fs/cgroup/{folder}/memory.max", limit)
    write(f"sys/fs/cgroup/{folder}/memory.current", used)
    write(f"sys/fs/cgroup/{folder}/memory.stat", f"anon 5\ninactive_file {cache}\nfile 7")


def version_1(write, folder, limit, used, cache=0):
    base = f"sys/fs/cgroup/memory/{folder}"
    write(f"{base}/memory.limit_in_bytes", limit)
    write(f"{base}/memory.usage_in_bytes", used)
    write(f"{base}/memory.stat", f"inactive_file 1\ntotal_inactive_file {cache}")


def test_this_machine():
    assert 10**7 < available_bytes() < 10**14


def test_no_files_at_all(tmp_path):
    assert available_bytes(tmp_path) > 0


def test_free_memory(system):
    assert available_bytes(system.root) == FREE


class TestVersion2:
    @pytest.mark.parametrize("folder", ["", "system.slice/docker-1.scope"])
    def test_limit_minus_usage(self, system, folder):
        system("proc/self/cgroup", f"0::/{folder}")
        version_2(system, folder, 700 * MB, 200 * MB)
        assert available_bytes(system.root) == 500 * MB

    def test_cache_can_be_reclaimed(self, system):
        system("proc/self/cgroup", "0::/")
        version_2(system, "", 700 * MB, 200 * MB, 150 * MB)
        assert available_bytes(system.root) == 650 * MB

    def test_parent_has_the_limit(self, system):
        system("proc/self/cgroup", "0::/pod/container")
        version_2(system, "pod", 600 * MB, 500 * MB)
        version_2(system, "pod/container", "max", 400 * MB)
        assert available_bytes(system.root) == 100 * MB

    def test_container_sees_its_group_at_the_top(self, system):
        system("proc/self/cgroup", "0::/../named/by/the/host")
        version_2(system, "", 700 * MB, 200 * MB)
        assert available_bytes(system.root) == 500 * MB

    def test_no_limit(self, system):
        system("proc/self/cgroup", "0::/")
        version_2(system, "", "max", 200 * MB)
        assert available_bytes(system.root) == FREE

    def test_over_the_limit(self, system):
        system("proc/self/cgroup", "0::/")
        version_2(system, "", 100 * MB, 200 * MB)
        assert available_bytes(system.root) == 0


class TestVersion1:
    GROUPS = "9:cpu:/docker/1\n4:hugetlb,memory:/docker/1\n0::/docker/1"

    @pytest.mark.parametrize("folder", ["", "docker/1"])
    def test_limit_minus_usage(self, system, folder):
        system("proc/self/cgroup", self.GROUPS)
        version_1(system, folder, 700 * MB, 200 * MB, 50 * MB)
        assert available_bytes(system.root) == 550 * MB

    def test_no_limit_is_a_huge_number(self, system):
        system("proc/self/cgroup", self.GROUPS)
        version_1(system, "docker/1", 9223372036854771712, 200 * MB)
        assert available_bytes(system.root) == FREE


def test_address_space_of_the_process(system):
    """In another process: a limit cannot be raised again."""
    code = f"""
import resource
import otgraph
from otgraph._memory import available_bytes, give_back_pages
from otgraph.exceptions import MemoryLimitError
from otgraph.solvers import room
resource.setrlimit(resource.RLIMIT_AS, ({6000 * MB}, {6000 * MB}))
print(available_bytes({str(system.root)!r}), available_bytes())
"""
    if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
        pytest.skip("the address space is limited already")
    system("proc/self/status", f"VmPeak: 1 kB\nVmSize: {1000 * 1024} kB")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    fake, real = map(int, done.stdout.split())
    assert fake == 5000 * MB
    assert real < 6000 * MB


def test_a_graph_that_fits_without_the_slack_of_a_screen_is_refused_before_any_search(
    rng, monkeypatch
):
    """The search would take more and more neighbors, for minutes, and end in the same error."""
    X = rng.normal(size=(1500, 10))
    n_pairs = otgraph.quadratic_ot_graph(X, 800.0).degrees.sum() / 2
    assert 0.9 < n_pairs / (1500 * 1499 / 2) < 0.97
    enough = n_pairs * base.BYTES_PER_PAIR / base.MEMORY_SHARE
    monkeypatch.setattr("otgraph.costs.base.available_bytes", lambda: int(1.02 * enough))

    def search(cost, k):
        raise AssertionError(k)

    monkeypatch.setattr("otgraph.graphs.transport.near_pairs", search)
    with pytest.raises(MemoryLimitError, match="may be used"):
        otgraph.quadratic_ot_graph(X, 800.0)


def test_first_neighbors_need_no_room_for_a_plan(monkeypatch, rng):
    """A list and both rows of it; for the plan the screen asks, when it knows its pairs."""
    cost, asked = as_cost(rng.normal(size=(3000, 5)), workers=Workers(1)), []
    monkeypatch.setattr(room, "FEW_BYTES", 0)
    monkeypatch.setattr(cost, "usable_bytes", lambda: 3000 * 20 * 40.0)
    monkeypatch.setattr(cost, "neighbors", asked.append)
    room.near_pairs(cost, 20)
    assert asked == [20]
    with pytest.raises(MemoryLimitError, match="42 candidates per point"):
        room.near_pairs(cost, 21)


def test_old_pairs_are_freed_before_room_for_new_ones_is_asked(monkeypatch, rng):
    events = []
    screener = Screener(as_cost(rng.normal(size=(300, 5)), workers=Workers(1)))
    monkeypatch.setattr(
        "otgraph.solvers.screening.require_room_for_screen", lambda *_: events.append("asked")
    )
    screener.screen(np.zeros(300), np.ones(300), free=lambda: events.append("freed"))
    assert events == ["freed", "asked"]


def test_pairs_are_freed_before_the_matrix_is_made(monkeypatch, rng):
    """The plan and its matrix are beside no candidates: these would be a third of the memory."""
    found, left = [], []
    make = transport.plan_weights

    def recorded(method):
        def call(*args, **options):
            result = method(*args, **options)
            found.append(weakref.ref(getattr(result, "pairs", result)))
            return result

        return call

    def counted(*args, **options):
        gc.collect()
        left.append(sum(pairs() is not None for pairs in found))
        return make(*args, **options)

    for name in ("neighbors", "screen"):
        monkeypatch.setattr(SearchedCost, name, recorded(getattr(SearchedCost, name)))
    monkeypatch.setattr(transport, "plan_weights", counted)
    otgraph.quadratic_ot_graph(rng.normal(size=(10_000, 6)), mean_degree=10, search="exact")
    assert len(found) > 1
    assert left == [0]


@pytest.mark.parametrize(("n", "rows"), [(1000, 8), (1 << 20, 8), (10_000_000, 1)])
def test_sampled_rows_of_many_points_fit(n, rows):
    """8 rows of ten million points would take 640 MB."""
    cost = as_cost(np.zeros((2, 1)), normalize=False, workers=Workers(1))
    cost.n = n
    assert cost.sample_rows == rows
    assert cost.partner_rows == max(1, base.SAMPLE_ENTRIES // n)


# Refusals under real limits ---------------------------------------------------------------

CALLS = """
import time
import numpy as np
import otgraph
LIMIT
X = np.random.default_rng(0).normal(size=(20_000, 3))
small = otgraph.gaussian_graph(X[:2000], 1.0)
otgraph.quadratic_ot_graph(X[:500], 1.0)  # compiles
calls = {
    "dense quadratic graph": lambda: otgraph.quadratic_ot_graph(X, eps=1e6),
    "dense path": lambda: otgraph.eps_path(X, [1e6, 1e5]),
    "large mean degree": lambda: otgraph.quadratic_ot_graph(X, mean_degree=15_000),
    "gaussian graph": lambda: otgraph.gaussian_graph(X),
    "entropic graph": lambda: otgraph.entropic_ot_graph(X),
    "many neighbors": lambda: otgraph.knn_gaussian_graph(X, 19_000),
    "dense rows": lambda: small.extend(np.repeat(X, 20, axis=0)),
    "gaussian graph without small weights": lambda: otgraph.gaussian_graph(X, max_error=1e-3),
    "entropic graph without small weights": lambda: otgraph.entropic_ot_graph(X, max_error=1e-3),
    "dense plan between clouds": lambda: otgraph.transport_graph(X, X + 1.0, 1e6),
    "several dense scales": lambda: otgraph.multiscale_graph(X, [1e5, 1e6]),
    "dense soft graph": lambda: otgraph.quadratic_ot_graph(X, 1e6, outlier_cost=1e7),
    "copies": lambda: otgraph.quadratic_ot_graph(np.floor(X / 9), 1.0, collapse=True),
}
for name, call in calls.items():
    began = time.process_time()
    try:
        call()
    except otgraph.exceptions.MemoryLimitError as error:
        assert "may be used" in str(error), error
    else:
        raise AssertionError(name)
    assert time.process_time() - began < 10, name
assert otgraph.quadratic_ot_graph(X, mean_degree=10).certificate.status == "exact"
print("done")
"""


def run_limited(limit, **options):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CALLS.replace("LIMIT", limit)],
        capture_output=True, text=True, **options,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr


def test_refused_within_seconds_under_a_limit_of_the_address_space():
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 * 10**9,) * 2)"
    run_limited(limit)


@pytest.fixture
def control_group():
    """A control group of version 1 or 2 with 2 GB."""
    for top, name in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = top / f"otgraph_test_{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / name).exists():
            (group / name).write_text("2000000000")
            yield group
            group.rmdir()
            return
        group.rmdir()
    pytest.skip("this process may not make a control group")


def test_refused_within_seconds_in_a_control_group(control_group):
    run_limited(f"open({str(control_group / 'cgroup.procs')!r}, 'w').write('0')")


KEPT = """
import resource
import numpy as np
from otgraph._memory import keep_freed_memory
keep_freed_memory()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(500_000).sum()
before = faults()
for _ in range(20):
    np.ones(500_000).sum()
print(faults() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the GNU C library")
def test_a_process_of_dask_keeps_what_it_frees():
    """Arrays of 4 MB are not filled with zeros again and again: 1000 pages each."""
    pages = {}
    for kept in (True, False):
        code = KEPT if kept else KEPT.replace("\nkeep_freed_memory()", "")
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"},
        )  # fmt: skip
        pages[kept] = int(done.stdout)
    assert pages[True] < 1000 < 10_000 < pages[False]


def resident_file_bytes():
    fields = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return next(1024 * int(field[1]) for field in fields if field and field[0] == "RssFile:")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pages_of_a_mapped_file_are_given_back(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((8192, 1024)))  # 64 MB
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert X.sum() == X.size
    before = resident_file_bytes()
    give_back_pages(X[100:])
    assert before - resident_file_bytes() > 60 * MB
    assert X.sum() == X.size


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_graph_of_a_mapped_file_keeps_none_of_its_pages(tmp_path):
    """The points are read twice: when they are sorted, and when the graph copies them."""
    points = np.random.default_rng(0).normal(size=(600, 8192)).astype(np.float32)  # 20 MB
    np.save(tmp_path / "X.npy", points)
    otgraph.quadratic_ot_graph(points[:, :8])  # loads libraries
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    before = resident_file_bytes()
    graph = otgraph.quadratic_ot_graph(X)
    assert resident_file_bytes() - before < 10 * MB
    np.testing.assert_array_equal(graph.points, points)


def test_changes_of_a_mapped_file_are_not_lost(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((600, 3)))
    X = np.load(tmp_path / "X.npy", mmap_mode="c")  # changes stay in memory
    X[:] = np.random.default_rng(0).normal(size=X.shape)
    expected = np.array(X)
    otgraph.quadratic_ot_graph(X)
    np.testing.assert_array_equal(X, expected)
