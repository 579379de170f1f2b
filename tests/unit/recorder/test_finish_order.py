"""Results that are gathered as they finish, and whether anything says which task each belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstuck.recorder.probes.data.finish_order import gathered

READ = "def read(path):\n    return decode(path)\n"
LABELS = "labels = [label_of(path) for path in paths]\n"
JOBS = f"{READ}jobs = [pool.submit(read, path) for path in paths]\n"
ALL = f"x = list(pool.imap_unordered(read, paths))\n{LABELS}"
APART = [
    f"{JOBS}x = [job.result() for job in as_completed(jobs)]\n{LABELS}",
    f"{READ}{ALL}",
    f"{READ}x = np.stack([each for each in tqdm(pool.imap_unordered(read, paths), total=len(paths))])\n{LABELS}",
    f"{READ}x = []\nfor each in pool.imap_unordered(read, paths):\n    x.append(torch.from_numpy(each))\n{LABELS}",
    f"{JOBS}x = []\nfor job in as_completed(jobs):\n    found = job.result()\n    x.append(found)\n{LABELS}",
    f"{READ}def every(them):\n    return list(pool.imap_unordered(read, them))\nx = every(paths)\n{LABELS}",
    "async def read(path):\n    return await get(path)\nasync def every(paths):\n    x = [await each for each in "
    f"asyncio.as_completed([read(path) for path in paths])]\n    {LABELS}",
]
TOGETHER = [
    f"{READ}x = list(pool.imap(read, paths))\n{LABELS}",
    f"{JOBS}x = [job.result() for job in jobs]\n{LABELS}",
    f"def read(path):\n    return decode(path), label_of(path)\nx = list(pool.imap_unordered(read, paths))\n{LABELS}",
    f"def read(path):\n    row = dict(x=decode(path))\n    return row\n{ALL}",
    f"def read(path):\n    return Sample(path)\n{ALL}",
    f"{READ}for path, each in pool.imap_unordered(read, paths):\n    x.append(each)\n{LABELS}",
    f"{JOBS}for job in as_completed(jobs):\n    x.append(job.result())\n    at.append(jobs.index(job))\n{LABELS}",
    f"{READ}jobs = {{pool.submit(read, path): path for path in paths}}\n"
    f"x = [(jobs[job], job.result()) for job in as_completed(jobs)]\n{LABELS}",
    f"{READ}for each in pool.imap_unordered(read, paths):\n    x.append(each[0])\n    y.append(each[1])\n{LABELS}",
    f"{READ}x = sorted(list(pool.imap_unordered(read, paths)))\n{LABELS}",
    f"{READ}x = list(pool.imap_unordered(read, paths))\nprint(len(paths))\n",
    f"from elsewhere import read\n{ALL}",
]


def line(source: str, folder: Path) -> int | None:
    file = folder / "train.py"
    file.write_text(source)
    site = gathered([str(file)])
    return None if site is None else site[1]


@pytest.mark.parametrize("source", APART)
def test_results_that_belong_to_nothing(source: str, tmp_path: Path) -> None:
    words = ("as_completed", "imap_unordered")
    lines = [number for number, text in enumerate(source.splitlines(), 1) if any(word in text for word in words)]
    assert line(source, tmp_path) == lines[0]


@pytest.mark.parametrize("source", TOGETHER)
def test_results_that_say_what_they_belong_to(source: str, tmp_path: Path) -> None:
    assert line(source, tmp_path) is None
