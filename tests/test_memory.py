"""The memory that may be taken: what is free, within the limits of containers and process."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from otgraph._memory import available_bytes

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
from otgraph._memory import available_bytes
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
