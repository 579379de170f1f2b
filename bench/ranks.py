"""Several ranks: `python -m bench.ranks` measures what noting a collective costs, and the verdict over many ranks.

Calls with and without our hooks alternate in one process, as one rank of one: what is left is torch's own code, and no
neighbour can be late. A DDP step is measured with a twin class that has torch's own functions in the place of ours.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.stats import interval

BLOCK = 200  # calls, or steps, that are timed together
WORLDS = (8, 64, 1000, 10_000)
MAX_MICROSECONDS, MAX_SECONDS, MAX_MEGABYTES = 3.0, 10.0, 1000.0
CASE = "ranks-metric-of-the-first"


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] != "--quick":
        print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]))))
        return 0
    pairs = 30 if "--quick" in sys.argv else 300
    over = []
    print("| what | measured (95 % interval) | may cost |\n|---|---|---|", flush=True)
    for what, measured, limit, good in rows(pairs):
        print(f"| {what} | {measured} | {limit} |", flush=True)
        over += [] if good else [what]
    if over:
        print(f"over the limit: {', '.join(over)}", file=sys.stderr)
    return 1 if over else 0


def rows(pairs: int) -> Iterator[tuple[str, str, str, bool]]:
    for kind, what in (("collective", "noting a collective"), ("ddp", "a step of DistributedDataParallel, longer by")):
        found = interval(_child(kind, pairs))
        told = f"{found.mean * 1e6:.2f} µs ({found.low * 1e6:.2f}–{found.high * 1e6:.2f})"
        limit = MAX_MICROSECONDS if kind == "collective" else 2 * MAX_MICROSECONDS  # a check before, a note after
        yield what, told, f"≤ {limit:g} µs", found.high * 1e6 <= limit
    for size in WORLDS:
        seconds, megabytes = _child("world", size)
        told = f"{seconds:.2f} s, {megabytes:.0f} MB"
        good = seconds <= MAX_SECONDS and megabytes <= MAX_MEGABYTES
        yield f"verdict, JSON report and page over {size:,} ranks", told, "≤ 10 s, ≤ 1 GB", good


def _child(*words: object) -> list[float]:
    command = [sys.executable, "-m", "bench.ranks", *map(str, words)]
    answer: list[float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout.splitlines()[-1])
    return answer


def _measured(kind: str, number: int) -> list[float]:
    if kind == "world":
        return _world(number)
    with tempfile.TemporaryDirectory() as folder:
        from unstuck.recorder import guard, start

        start.start(folder)
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=0, world_size=1)
        hooked, plain = _collectives(torch, dist) if kind == "collective" else _ddp_steps(torch)
        differences = [_pair(hooked, plain) for _ in range(number + 10)][10:]
        dist.destroy_process_group()
        guard.remove_all()
    return differences


def _pair(hooked: Callable[[], object], plain: Callable[[], object]) -> float:
    """Seconds of processor time of one call more: what is waited for gloo's threads, or a neighbour, is not ours."""
    taken = {}
    for call in random.sample((hooked, plain), 2):
        began = time.thread_time_ns()
        for _ in range(BLOCK):
            call()
        taken[call] = time.thread_time_ns() - began
    return (taken[hooked] - taken[plain]) / BLOCK / 1e9


def _collectives(torch: Any, dist: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    tensor, own = torch.ones(8), dist.all_reduce.__wrapped__
    return lambda: dist.all_reduce(tensor), lambda: own(tensor)


def _ddp_steps(torch: Any) -> tuple[Callable[[], object], Callable[[], object]]:
    kind = torch.nn.parallel.DistributedDataParallel
    own = {name: getattr(kind, name).__wrapped__ for name in ("_pre_forward", "_post_forward")}
    twin = type("Plain", (kind,), own)

    def steps(wrapper: Any) -> Callable[[], object]:
        torch.manual_seed(0)
        model, x = wrapper(torch.nn.Linear(16, 1)), torch.ones(4, 16)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

        def step() -> None:  # of the optimizer too: backward passes without one are all looked at, as the first steps
            model(x).sum().backward()
            optimizer.step()

        return step

    return steps(kind), steps(twin)


def _world(size: int) -> list[float]:
    from tests.rank_worlds import world_of_many
    from tests.unit.rules.record_cases import saved_case

    from unstuck.report import json_report, terminal
    from unstuck.report.screen import Screen
    from unstuck.rules.diagnose import diagnose
    from unstuck.serial import dump_text

    case = world_of_many(saved_case(CASE), size)
    began = time.perf_counter()
    diagnosis = diagnose(case)
    dump_text(json_report.report(case, diagnosis))
    terminal.render(case, diagnosis, Screen(), live=False)
    return [time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]


if __name__ == "__main__":
    sys.exit(main())
