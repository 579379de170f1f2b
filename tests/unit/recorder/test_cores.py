"""Cores that may really be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstuck.recorder import cores

MOUNTS = """\
24 1 0:20 / / rw - ext4 /dev/sda1 rw
30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
"""


def lay(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2.0),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/x\n3:memory:/y\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
        ({}, None),
    ],
)
def test_quota(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    files = {**files, "proc/self/mountinfo": MOUNTS}
    assert cores.quota(root=lay(tmp_path, files)) == quota


def test_at_least_one_and_no_more_than_the_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "quota", lambda _: 0.3)
    assert cores.whole() == 1
    monkeypatch.setattr(cores, "quota", lambda _: 1000.0)
    assert 1 <= cores.allowed() < 1000
