"""Which loops ask their helpers one after the other for no reason: by source alone."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from unstuck.observer.asking import Asking, asking_loop
from unstuck.observer.source import Source

FREE = {
    "a-pipe-for-each": """
        def step(conns, actions):
            states = []
            for conn, action in zip(conns, actions):
                conn.send(action)
                states.append(conn.recv())  # waits
            return states
        """,
    "two-queues": """
        def score(jobs, done, items):
            total = 0
            for item in items:
                jobs.put(prepare(item))
                answer = done.get()  # waits
                total += answer
            return total
        """,
    "an-element-of-its-own": """
        def step(conns, states):
            for k, conn in enumerate(conns):
                conn.send(policy(states[k]))
                states[k] = conn.recv()  # waits
        """,
    "joined-in-the-loop": """
        def load(paths):
            for path in paths:
                thread = threading.Thread(target=read, args=(path,))
                thread.start()
                thread.join()  # waits
        """,
    "counted": """
        def fill(pool, size):
            rows = []
            while len(rows) < size:
                rows.append(pool.submit(work).result())  # waits
            return rows
        """,
    "kept-but-not-asked-with": """
        class Bench:
            def step(self, actions):
                for conn, action in zip(self.conns, actions):
                    conn.send(self.clip(action))
                    self.memory.append(conn.recv())  # waits

            def clip(self, action):
                return min(action, self.limit)
        """,
}
BOUND = {
    "all-asked-first": """
        def step(conns, actions):
            for conn, action in zip(conns, actions):
                conn.send(action)
            states = []
            for conn in conns:
                states.append(conn.recv())  # waits
            return states
        """,
    "each-from-the-one-before": """
        def follow(conns, ahead):
            for conn in conns:
                conn.send(ahead)
                ahead = conn.recv()  # waits
        """,
    "by-way-of-another-name": """
        def follow(conns, ahead):
            for conn in conns:
                conn.send(limit)
                state = conn.recv()  # waits
                limit = state * 0.9
        """,
    "the-element-before": """
        def follow(conns, states):
            for k in range(1, len(conns)):
                conns[k].send(states[k - 1])
                states[k] = conns[k].recv()  # waits
        """,
    "until-one-is-good": """
        def search(conns, plans):
            for conn, plan in zip(conns, plans):
                conn.send(plan)
                result = conn.recv()  # waits
                if result > 0:
                    break
        """,
    "while-not-good": """
        def settle(conn):
            error = 1.0
            while error > 0.1:
                conn.send(1)
                error = conn.recv()  # waits
        """,
    "two-stages": """
        def through(first, second, items):
            for item in items:
                first.send(item)
                half = first.recv()
                second.send(half)
                yield_(second.recv())  # waits
        """,
    "told-to-what-asks": """
        def tune(pool, study):
            for _ in range(10):
                result = pool.submit(work, study.ask()).result()  # waits
                study.tell(result)
        """,
    "stages-of-which-one-is-quick": """
        def through(first, second, items):
            for item in items:
                first.put(item)
                half = first.get()  # waits
                second.put(half)
                rows.append(second.get())
        """,
    "kept-by-the-object": """
        class Chain:
            def step(self):
                for conn in self.conns:
                    conn.send(self.plan())
                    self.state = conn.recv()  # waits

            def plan(self):
                return self.state + 1
        """,
    "no-request": """
        def drain(queue, count):
            for _ in range(count):
                rows.append(queue.get())  # waits
        """,
    "a-pipe-that-is-full": """
        def share(conns, weights):
            for conn in conns:
                conn.send(weights)  # waits
        """,
    "answered-before-it-is-asked": """
        def rolling(conns, actions):
            for conn, action in zip(conns, actions):
                states.append(conn.recv())  # waits
                conn.send(action)
        """,
}


def found(folder: Path, text: str, *outer: str) -> Asking | None:
    path = folder / "script.py"
    path.write_text(dedent(text))
    lines = path.read_text().splitlines()
    waits = [(str(path), number) for number, line in enumerate(lines, 1) if "# waits" in line]
    frames = [next((str(path), n, "Env.step") for n, line in enumerate(lines, 1) if line.endswith("# waits"))]
    frames += [(str(path), next(n for n, line in enumerate(lines, 1) if each in line), "f") for each in outer]
    return asking_loop(tuple(frames), waits, Source())


@pytest.mark.parametrize("text", FREE.values(), ids=FREE)
def test_rounds_that_need_nothing_of_each_other(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) is not None


@pytest.mark.parametrize("text", BOUND.values(), ids=BOUND)
def test_loops_that_are_as_they_must_be(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, text) is None


def test_an_executor_says_how_many_it_has(tmp_path: Path) -> None:
    loop = "\nrows = []\nfor item in items:\n    rows.append(pool.submit(work, item).result())  # waits\n"
    for made, helpers in (("ThreadPoolExecutor(8)", 8), ("ThreadPoolExecutor(max_workers=1)", 1), ("Pool(N)", 4)):
        asking = found(tmp_path, f"N = 4\npool = {made}{loop}")
        assert asking is not None
        assert asking.helpers == helpers


def test_a_method_that_asks_and_waits(tmp_path: Path) -> None:
    text = """
        class Env:
            def step(self, action):
                self.conn.send(action)
                while not self.conn.poll(0.1):
                    check()
                return self.conn.recv()  # waits

        def advance(envs, actions):
            return [env.step(action) for env, action in zip(envs, actions)]
        """
    asking = found(tmp_path, text, "return [env")
    assert asking is not None
    assert asking.place == 1
    kept = text.replace("return self", "self.state = self").replace("send(action)", "send(self.state)")
    assert found(tmp_path, kept, "return [env") is None
