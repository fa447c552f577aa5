"""The memory and disk that are free on a machine, and the amounts that are too small."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from streamproof.properties.system import resources
from streamproof.properties.system.resources import Spent, cpu_seconds, free_memory, too_small

MEMINFO = "MemTotal:       4000000 kB\nMemFree:          10000 kB\nMemAvailable:   {} kB\nSwapFree:        {} kB\n"


def system(root: Path, available: int, swap: int = 0, **group: object) -> Path:
    """Make the files in which Linux says how much memory (kB) there is."""
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text(MEMINFO.format(available, swap))
    (root / "sys/fs/cgroup").mkdir(parents=True)
    for name, content in group.items():
        (root / "sys/fs/cgroup" / name.replace("_", ".")).write_text(f"{content}\n")
    return root


def test_memory_is_what_is_available_and_swap(tmp_path: Path) -> None:
    assert free_memory(system(tmp_path, 1_000_000, 500_000)) == pytest.approx(1.536)


@pytest.mark.parametrize(
    ("limit", "used", "cached", "left"),
    [("max", 1, 0, 2.048), (3 * 10**9, 10**9, 0, 2.0), (2 * 10**9, 10**9, 5 * 10**8, 1.5), (9 * 10**9, 0, 0, 2.048)],
)
def test_a_container_may_have_less_than_the_machine(
    tmp_path: Path, limit: object, used: int, cached: int, left: float
) -> None:
    stat = f"anon 12\nfile {cached}\nkernel 3"
    root = system(tmp_path, 2_000_000, memory_max=limit, memory_current=used, memory_stat=stat)
    assert free_memory(root) == pytest.approx(left)


@pytest.mark.parametrize("content", [None, "", "MemFree: 3 kB\n", "nonsense", "MemAvailable: x kB\n"])
def test_where_the_system_says_nothing_nothing_is_too_small(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/meminfo").write_text(content)
    assert free_memory(tmp_path) is None
    assert too_small({"TMPDIR": tmp_path / "missing"}, tmp_path) is None


def test_too_little_memory_is_named_with_the_remedy(tmp_path: Path) -> None:
    said = too_small({}, system(tmp_path, 900_000))
    assert said is not None
    assert "0.9 GB of memory left" in said
    assert "end other programs, or use a machine" in said


def test_as_much_memory_as_is_needed_is_enough(tmp_path: Path) -> None:
    assert too_small({}, system(tmp_path, 1_000_000)) is None


def test_a_folder_without_room_is_named_with_what_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    free = {tmp_path / "temporary": 200_000_000, tmp_path / "shared": 199_000_000}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(0, 0, free[folder]))
    root = system(tmp_path, 10**7)
    assert too_small({"TMPDIR": tmp_path / "temporary"}, root) is None
    said = too_small({"TMPDIR": tmp_path / "temporary", "--shared": tmp_path / "shared"}, root)
    assert said is not None
    assert said.startswith(f"{tmp_path / 'shared'}: 199 MB are free there, but Spark needs at least 200 MB")
    assert said.endswith("name another folder with --shared")


def test_this_machine_says_how_much_it_has() -> None:
    if Path("/proc/meminfo").exists():
        assert 0 < (free_memory() or 0) < 100_000
    assert resources.free_disk(Path(__file__).parent)


def test_cpu_time_is_of_a_process_its_descendants_and_their_ended_children(tmp_path: Path) -> None:
    a_second = os.sysconf("SC_CLK_TCK")
    for number, parent, *ticks in [(7, 1, 1, 2, 3, 4), (8, 7, 10, 0, 0, 0), (9, 8, 20, 0, 0, 0), (10, 1, 99, 0, 0, 0)]:
        stat = tmp_path / "proc" / str(number) / "stat"
        stat.parent.mkdir(parents=True)
        times = " ".join(str(one * a_second) for one in ticks)
        stat.write_text(f"{number} (a) S (b) S {parent} 0 0 0 0 0 0 0 0 0 {times} 0 0")
    assert (cpu_seconds(7, tmp_path), cpu_seconds(9, tmp_path), cpu_seconds(7, tmp_path / "none")) == (40, 20, 0)
    assert Spent(5, 3).since(Spent(2, 1)) == (3, 2)
