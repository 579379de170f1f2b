"""Loops of a parent that wait for what its children change in copies, as a forked child reads them off its stack."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from unstuck.recorder.probes.loops import parents_loops
from unstuck.recorder.records.loops import Copied

HEAD = """

    from dataclasses import dataclass
    from multiprocessing import Process
    from threading import Thread
    @dataclass
    class Progress:
        steps: int = 0
    class Proxy(dict): pass
    def refresh(stats): pass
    def bumped(stats): stats["steps"] += 1
    done = over = 0
    rows = []
    def stop(*given):
        global over
        over = 1
    def count():
        global done, over
        done += 1
        over = done > 9
    def fill(): rows.append(1)
    def trainer(stats, progress):
        bumped(stats)
        progress.steps += 1
    def main(started):
        stats, progress, queue, seen = dict(steps=0), Progress(), [], dict()
        {}
"""
PROCESS = "p = Process(target=trainer, args=(stats, progress)); started()\n        "
COPIED = {
    "an item": PROCESS + "while stats['steps'] < 9: print(stats)",
    "from where it is started": "while stats['steps'] < 9: p = Process(target=trainer, args=(stats,)); started()",
    "an attribute": PROCESS + "while progress.steps < 9: print(f'{progress.steps}')",
    "read before": "stats['steps'] = 0\n        " + PROCESS + "while 9 > stats['steps']: len(stats)",
    "a global": "p = Process(target=count); started()\n        while done < 9: pass",
    "not yet": "p = Process(target=count); started()\n        while not done: pass",
    "a list": "p = Process(target=fill); started()\n        while len(rows) < 9: pass",
}
NOT_COPIED = {
    "a proxy": "stats = Proxy(steps=0)\n        " + PROCESS + "while stats['steps'] < 9: pass",
    "it counts itself": PROCESS + "while stats['steps'] < 9: stats['steps'] += 1",
    "it asks": PROCESS + "while stats['steps'] < 9: refresh(stats)",
    "it takes over": PROCESS + "while stats['steps'] < 9: stats.update(queue.pop())",
    "left otherwise": PROCESS + "while stats['steps'] < 9:\n            if queue: break",
    "a thread": "Thread(target=refresh, args=(stats,))\n        " + PROCESS + "while stats['steps'] < 9: pass",
    "a thread of the same": "Thread(target=trainer)\n        " + PROCESS + "while stats['steps'] < 9: pass",
    "called here too": PROCESS + "while stats['steps'] < 9: trainer(stats, progress)",
    "what it calls": PROCESS + "while stats['steps'] < 9: bumped(seen)",
    "another name": "seen['stats'] = stats\n        " + PROCESS + "while stats['steps'] < 9: pass",
    "a signal": "repr(stop); p = Process(target=count); started()\n        while not over: pass",
    "a local": PROCESS + "while len(queue) < 9: pass",
    "before": "while stats['steps'] > 9: pass\n        " + PROCESS,
}


def read(tmp_path: Path, source: str) -> list[Copied]:
    """By a child that was started at `started()`."""

    class StartedError(Exception):
        pass

    told: list[Copied] = []

    def started() -> None:
        frame: FrameType | None = sys._getframe(1)
        assert frame is not None
        told.extend(parents_loops.copied([(frame, frame.f_lineno)]))
        raise StartedError

    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(HEAD.replace("{}", source)))
    module: Any = ModuleType("script_under_test")
    module.__file__ = str(script)
    sys.modules[module.__name__] = module
    exec(compile(script.read_text(), str(script), "exec"), vars(module))
    with pytest.raises(StartedError):
        module.main(started)
    del sys.modules[module.__name__]
    return told


@pytest.mark.parametrize("name", COPIED)
def test_reads_what_only_copies_change(tmp_path: Path, name: str) -> None:
    (copied,) = read(tmp_path, COPIED[name])
    assert copied.holds
    assert copied.site[2] in ("bumped", "trainer", "count", "fill")


@pytest.mark.parametrize("name", NOT_COPIED)
def test_is_silent_where_the_parent_may_change_it(tmp_path: Path, name: str) -> None:
    assert [each.tested.text for each in read(tmp_path, NOT_COPIED[name])] == []
