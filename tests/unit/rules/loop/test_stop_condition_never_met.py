"""Loops that end and loops that cannot: real code is run, described at its seams, and judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.loop.described_loops import STEPS, described
from unstuck.model import Finding
from unstuck.rules.loop import stays, stop_condition_never_met


def judged(tmp_path: Path, source: str) -> tuple[list[Finding], int]:
    """What the rule says at the last description."""
    case, made = described(tmp_path, source)
    return [each for each in stop_condition_never_met.decide(case) if isinstance(each, Finding)], made


ENDLESS = {
    "longer-than-a-deque-can-be": """
        from collections import deque
        class Window:
            def __init__(self, size=16): self.size, self.level, self.seen = size, 0, deque(maxlen=size)
            def note(self, value):
                self.seen.append(value)
                if len(self.seen) > self.size and sum(self.seen) >= 0:
                    self.level += 1
        def train(step_made):
            window = Window()
            while window.level < 3:
                step_made()
                window.note(1.0)
    """,
    "a-remainder-that-never-comes": """
        def train(step_made, block=10):
            step = 0
            while True:
                step_made()
                step += 1
                if block <= step % block:
                    break
    """,
    "cleared-by-a-second-callback": """
        class State:
            def __init__(self): self.epoch, self.stop = 0, False
        class Stop:
            def on_end(self, state):
                if state.epoch > 5: state.stop = True
        class Keep:
            def on_end(self, state): state.stop = False
        class Trainer:
            def __init__(self): self.state, self.callbacks = State(), [Stop(), Keep()]
            def notify(self, hook, *given):
                for callback in self.callbacks:
                    if hasattr(callback, hook): getattr(callback, hook)(*given)
            def fit(self, step_made):
                while not self.state.stop:
                    step_made()
                    self.state.epoch += 1
                    self.notify("on_end", self.state)
        def train(step_made): Trainer().fit(step_made)
    """,
    "cleared-as-the-epoch-begins": """
        class Trainer:
            def __init__(self): self.done, self.epoch = False, 0
            def begin(self): self.done = False
            def end(self):
                self.epoch += 1
                if self.epoch >= 5: self.done = True
            def fit(self, step_made):
                while True:
                    self.begin()
                    if self.done:
                        return
                    step_made()
                    self.end()
        def train(step_made): Trainer().fit(step_made)
    """,
    "set-in-a-copy": """
        def stop_after(state):
            if state["epoch"] > 5: state["stop"] = True
        def train(step_made):
            state = {"epoch": 0, "stop": False}
            while not state["stop"]:
                step_made()
                state["epoch"] += 1
                for hook in [stop_after]: pass
                stop_after(state.copy())
    """,
    "set-in-a-replaced-state": """
        from dataclasses import dataclass, replace
        @dataclass
        class State:
            epoch: int = 0
            stop: bool = False
        class Stop:
            def __call__(self, seen):
                if seen.epoch > 5: seen.stop = True
        def train(step_made):
            state, hooks = State(), [Stop()]
            while not state.stop:
                step_made()
                state.epoch += 1
                now = replace(state)
                for hook in hooks: hook(now)
    """,
    "counter-wrapped": """
        def train(step_made):
            step = 0
            while step < 100:
                step_made()
                step = (step + 1) % 100
    """,
    "counter-clamped": """
        TOTAL = 100
        def train(step_made):
            step = 0
            while step < TOTAL:
                step_made()
                step = min(step + 1, TOTAL - 1)
    """,
    "percents-in-a-property": """
        class Trainer:
            def __init__(self): self.history, self.target = [], 97.5
            @property
            def accuracy(self): return self.history[-1] if self.history else 0.0
            @property
            def good_enough(self):
                "As good as it must be."
                return self.accuracy >= self.target
            def fit(self, step_made):
                while not self.good_enough:
                    step_made()
                    self.history.append(1 - 0.4 / (1 + len(self.history)))
        def train(step_made):
            Trainer().fit(step_made)
    """,
    "jumped-in-a-dataclass": """
        from dataclasses import dataclass
        @dataclass
        class Budget:
            tokens: int
            used: int = 0
            def spend(self, count): self.used += count
            def exhausted(self): return self.used == self.tokens
        def train(step_made):
            budget = Budget(500)
            while not budget.exhausted():
                step_made()
                budget.spend(7)
    """,
    "patience-in-a-closure": """
        def stopping(patience):
            best, waited = 0.0, 0
            def should_stop(score):
                nonlocal best, waited
                if score >= best or score <= best:
                    best, waited = score, 0
                else:
                    waited += 1
                return waited >= patience
            return should_stop
        def train(step_made):
            should_stop, score = stopping(5), 0.5
            while True:
                step_made()
                score = (7 * score + 0.3) % 1
                if should_stop(score):
                    break
    """,
    "jumped-in-a-callback": """
        class State:
            def __init__(self): self.step, self.stop = 0, False
        class StopAt:
            def __init__(self, last): self.last = last
            def on_log(self, state):
                if state.step == self.last:
                    state.stop = True
        class Engine:
            def __init__(self): self.state, self.callbacks = State(), [StopAt(100)]
            def one(self, step_made):
                step_made()
                self.state.step += 1
            def run(self, step_made):
                while not self.state.stop:
                    self.one(step_made)
                    if self.state.step % 8 == 0:
                        for callback in self.callbacks: callback.on_log(self.state)
        def train(step_made):
            Engine().run(step_made)
    """,
    "a-loss-at-its-floor": """
        def train(step_made, target=1e-3):
            step, loss = 0, 1.0
            while loss > target:
                step_made()
                step += 1
                loss = 0.15 + 0.5 ** step
    """,
    "a-change-that-is-rounding": """
        class Solver:
            tolerance = 1e-12
            def run(self, step_made):
                step = 0
                while True:
                    step_made()
                    step += 1
                    change = 1e-7 * (1 + step * 37 % 11) + 0.5 ** step
                    if change < self.tolerance:
                        return
        def train(step_made):
            Solver().run(step_made)
    """,
    "or": """
        class Config: anneal = 0; total = 100
        def train(step_made, cfg=Config()):
            step = 0
            while not cfg.anneal or step < cfg.total:
                step_made()
                step += 1
    """,
    "jumped": """
        def train(step_made, n=100):
            seen = 0
            while True:
                step_made()
                seen += 32
                if seen == n:
                    break
    """,
    "jumped-not-equal": """
        class T:
            def __init__(self): self.seen, self.n = 0, 100
            def one(self, step_made):
                step_made()
                self.seen += 7
            def run(self, step_made):
                while self.seen != self.n:
                    self.one(step_made)
        def train(step_made): T().run(step_made)
    """,
    "not-advanced": """
        def train(step_made, epochs=3):
            epoch = 0
            while epoch < epochs:
                for _ in range(10):
                    step_made()
    """,
    "set-back": """
        def train(step_made, total=100):
            step = 0
            while step < total:
                step = 0
                for _ in range(7):
                    step_made()
                    step += 1
    """,
    "inner-break": """
        def train(step_made, max_steps=50):
            step = 0
            while True:
                for _ in range(9):
                    step_made()
                    step += 1
                    if step >= max_steps:
                        break
    """,
    "best-never-updated": """
        def train(step_made, patience=3):
            best, bad = float("inf"), 0
            loss = 5.0
            while True:
                step_made()
                loss = loss + 0.1
                if loss < best:
                    bad = 0
                else:
                    bad += 1
                if bad >= patience:
                    break
    """,
    "counter-nobody-raises": """
        def train(step_made, patience=3):
            bad = 0
            while True:
                step_made()
                if bad > patience:
                    return
    """,
    "wrong-name": """
        def train(step_made, max_epochs=5):
            epoch, epochs_done = 0, 0
            while epoch < max_epochs:
                for _ in range(20):
                    step_made()
                epochs_done += 1
    """,
    "flag-behind-an-equality": """
        def train(step_made, total=1000):
            seen, finished = 0, False
            while not finished:
                for _ in range(9):
                    step_made()
                    seen += 48
                    if seen == total:
                        finished = True
                        break
    """,
    "or-with-a-loss-that-stands": """
        def train(step_made, target=0.02, most=100):
            step, loss = 0, 9.0
            while loss > target or step < most:
                step_made()
                step += 1
                loss = 0.3 + 1.0 / (step + 5) + 0.01 * (step % 3)
    """,
    "set-back-in-a-tuple": """
        def train(step_made, cfg={"iters": 100}):
            it = 0
            while it < cfg["iters"]:
                it, total = 0, 0.0
                for _ in range(7):
                    step_made()
                    it += 1
                    if it >= cfg["iters"]:
                        break
    """,
    "stopper-whose-best-is-never-updated": """
        class EarlyStopping:
            def __init__(self, patience): self.patience, self.best, self.bad = patience, float("inf"), 0
            def step(self, value):
                if value < self.best - 1e-3:
                    self.bad = 0
                else:
                    self.bad += 1
                return self.bad >= self.patience
        def train(step_made):
            stopper, loss = EarlyStopping(4), 1.0
            while True:
                for _ in range(5):
                    step_made()
                loss += 0.1
                if stopper.step(loss):
                    break
    """,
    "stopper-with-a-flag": """
        class EarlyStopping:
            def __init__(self, patience):
                self.patience, self.best, self.counter, self.early_stop = patience, None, 0, False
                self.lowest = float("inf")
            def __call__(self, loss):
                if loss > self.lowest:
                    self.counter += 1
                    if self.counter >= self.patience:
                        self.early_stop = True
                else:
                    self.counter = 0
        def train(step_made):
            stopping, loss = EarlyStopping(4), 1.0
            while True:
                for _ in range(5):
                    step_made()
                loss += 0.1
                stopping(loss)
                if stopping.early_stop:
                    print("stop")
                    break
    """,
    "inner-counter": """
        def train(step_made, most=120):
            batches, total = [1] * 10, 0
            while True:
                for step, b in enumerate(batches):
                    step_made()
                    total += 1
                    if step >= most:
                        return total
    """,
    "an-item-nobody-changes": """
        def train(step_made):
            state = {"epoch": 0, "most": 10}
            while state["epoch"] < state["most"]:
                step_made()
    """,
    "count": """
        import itertools
        def train(step_made, total=55):
            done = 0
            for i in itertools.count():
                step_made()
                done += 10
                if done == total:
                    break
    """,
    "jumped-in-a-far-range": """
        def train(step_made, budget=1000):
            tokens = 0
            for step in range(10**15):
                step_made()
                tokens += 48
                if tokens == budget:
                    break
    """,
    "halved-below-its-bound": """
        def train(step_made, stop_at=0.001):
            rate, step = 0.5, 0
            while rate != stop_at:
                step_made()
                step += 1
                if step % 50 == 0:
                    rate *= 0.5
    """,
    "percents": """
        def train(step_made):
            accuracy, epoch = 0.0, 0
            while accuracy < 98:
                step_made()
                epoch += 1
                accuracy = 1 - 1 / (epoch + 2)
    """,
    "percents-the-other-way-round": """
        class Metrics: val_acc = 0.0
        def train(step_made):
            metrics = Metrics()
            while True:
                step_made()
                metrics.val_acc = 0.75
                if 90 <= metrics.val_acc:
                    return
    """,
    "best-is-nan": """
        class Stopper:
            def __init__(self): self.best, self.bad, self.stop = None, 0, False
            def __call__(self, value):
                if self.best is None:
                    self.best = value
                if value > self.best:
                    self.bad += 1
                    if self.bad >= 5:
                        self.stop = True
                else:
                    self.best = min(self.best, value)
                    self.stop = False
        def train(step_made):
            stopper, loss = Stopper(), float("nan")
            while not stopper.stop:
                step_made()
                loss = float("nan") if loss != loss else loss
                stopper(loss)
    """,
    "worse-is-an-improvement": """
        class Stopper:
            def __init__(self, patience=5, delta=0.05):
                self.patience, self.delta, self.best, self.bad = patience, delta, float("inf"), 0
            def stops(self, value):
                if value < self.best + self.delta:
                    self.best = value
                    self.bad = 0
                else:
                    self.bad += 1
                    if self.bad >= self.patience:
                        return True
                return False
        def train(step_made):
            stopper = Stopper()
            for epoch in range(10**15):
                step_made()
                if stopper.stops(1 + 0.001 * (epoch % 7)):
                    break
    """,
    "a-tensor-that-jumps": """
        import torch
        def train(step_made):
            seen = torch.zeros(())
            while seen != 100:
                step_made()
                seen += 3
    """,
    "grows-to-what-it-is": """
        import math
        class Course:
            def __init__(self): self.length, self.growth, self.goal, self.seen = 6, 1.15, 26, 0.0
            @property
            def finished(self): return self.length >= self.goal
            def report(self, accuracy):
                self.seen = 0.5 * self.seen + 0.5 * accuracy
                if self.seen > 0.9:
                    self.length = min(math.floor(self.length * self.growth), self.goal)
                    self.seen = 0.0
        def train(step_made):
            course = Course()
            while not course.finished:
                step_made()
                course.report(1.0)
    """,
    "capped-below-the-goal": """
        def train(step_made):
            horizon, cap = 1, 40
            while horizon < 50:
                step_made()
                longer = horizon + 2
                horizon = min(longer, cap)
    """,
    "floor-above-the-last-rate": """
        def train(step_made):
            rate = 0.1
            while True:
                step_made()
                rate = max(rate * 0.8, 1e-4)
                if rate < 1e-5:
                    break
    """,
    "gain-over-infinity": """
        from collections import deque
        class Levelled:
            def __init__(self, patience=6, least=0.01):
                self.best, self.least, self.gains = float("inf"), least, deque(maxlen=patience)
            def __call__(self, value):
                gain = (self.best - value) / self.best
                if gain > self.least:
                    self.best = value
                self.gains.append(gain)
                return len(self.gains) == self.gains.maxlen and max(self.gains) <= self.least
        def train(step_made):
            levelled, done, loss = Levelled(), False, 1.0
            while not done:
                step_made()
                loss *= 0.99
                done = levelled(loss)
    """,
    "gain-over-infinity-counted": """
        def train(step_made):
            best, calm, loss = float("inf"), 0, 1.0
            while calm < 5:
                step_made()
                loss *= 0.99
                gain = 1 - loss / best if best < 1e9 else (best - loss) / best
                if gain > 0.01:
                    best, calm = loss, 0
                elif gain <= 0.01:
                    calm += 1
    """,
}

ENDING = {
    "grows-after-long": """
        def train(step_made):
            n, passed, round_ = 10, 0, 0
            while n < 40:
                step_made()
                round_ += 1
                if round_ % 200 == 0:
                    n = int(n * 1.1)
    """,
    "growth-that-grows-too": """
        def train(step_made):
            n, growth = 6, 1.0
            while n < 40:
                step_made()
                growth += 0.0001
                n = int(n * growth)
    """,
    "cap-that-another-method-lifts": """
        class Plan:
            def __init__(self): self.size, self.cap, self.made = 1, 4, 0
            def grow(self): self.size = min(self.size + 1, self.cap)
            def lift(self):
                self.made += 1
                if self.made > 590: self.cap = 100
        def train(step_made):
            plan = Plan()
            while plan.size < 50:
                step_made()
                plan.grow()
                plan.lift()
    """,
    "cap-of-a-global-that-a-function-lifts": """
        cap, made = 4, 0
        def lift():
            global cap, made
            made += 1
            if made > 590: cap = 100
        def train(step_made):
            size = 1
            while size < 50:
                step_made()
                size = min(size + 1, cap)
                lift()
    """,
    "first-check-after-long": """
        from collections import deque
        class Levelled:
            def __init__(self):
                self.best, self.gains = float("inf"), deque([float("nan")] * 4, maxlen=4)
            def __call__(self, value):
                gain = (self.best - value) / value
                if gain > 0.01:
                    self.best = value
                self.gains.append(gain)
                return max(self.gains) <= 0.01
        def train(step_made):
            levelled, done, value = Levelled(), False, float("inf")
            while not done:
                for _ in range(590):
                    step_made()
                value = 1.0
                done = levelled(value)
    """,
    "infinity-replaced-at-the-first-check": """
        import math
        from collections import deque
        class Levelled:
            def __init__(self):
                self.best, self.gains = float("inf"), deque(maxlen=4)
            def __call__(self, value):
                gain = (self.best - value) / self.best
                if gain > 0.01 or math.isinf(self.best):
                    self.best = value
                self.gains.append(gain)
                return len(self.gains) == 4 and max(self.gains) <= 0.01
        def train(step_made):
            levelled, done = Levelled(), False
            while not done:
                for _ in range(590):
                    step_made()
                done = levelled(1.0)
    """,
    "a-queue-that-is-emptied-late": """
        def train(step_made):
            queue, made = [1], 0
            while queue:
                step_made()
                made += 1
                if made < 0:
                    queue.append(1)
                if made > 590:
                    queue.pop()
    """,
    "cleared-before-it-is-set": """
        class State:
            def __init__(self): self.epoch, self.stop = 0, False
        class Keep:
            def on_end(self, state): state.stop = False
        class Stop:
            def on_end(self, state):
                if state.epoch > 450: state.stop = True
        class Trainer:
            def __init__(self): self.state, self.callbacks = State(), [Keep(), Stop()]
            def fit(self, step_made):
                while not self.state.stop:
                    step_made()
                    self.state.epoch += 1
                    for callback in self.callbacks: callback.on_end(self.state)
        def train(step_made): Trainer().fit(step_made)
    """,
    "the-rest-of-the-callbacks-is-skipped": """
        class State:
            def __init__(self): self.epoch, self.stop = 0, False
        class Keep:
            def on_end(self, state): state.stop = False
        class Stop:
            def on_end(self, state):
                if state.epoch > 450: state.stop = True
        class Trainer:
            def __init__(self): self.state, self.callbacks = State(), [Stop(), Keep()]
            def fit(self, step_made):
                while not self.state.stop:
                    step_made()
                    self.state.epoch += 1
                    for callback in self.callbacks:
                        callback.on_end(self.state)
                        if self.state.stop:
                            break
        def train(step_made): Trainer().fit(step_made)
    """,
    "cleared-below-a-least-number": """
        class Trainer:
            def __init__(self): self.stop, self.epoch = False, 0
            def end(self):
                self.epoch += 1
                if self.epoch % 3 == 0: self.stop = True
                if self.epoch < 450: self.stop = False
            def fit(self, step_made):
                while not self.stop:
                    step_made()
                    self.end()
        def train(step_made): Trainer().fit(step_made)
    """,
    "tested-in-the-loop-within": """
        class Trainer:
            def __init__(self): self.stop, self.step = False, 0
            def one(self, step_made):
                step_made()
                self.step += 1
                if self.step >= 450: self.stop = True
            def fit(self, step_made):
                while True:
                    self.stop = False
                    for _ in range(7):
                        if self.stop:
                            return
                        self.one(step_made)
        def train(step_made): Trainer().fit(step_made)
    """,
    "cleared-unless-it-returns": """
        class Trainer:
            def __init__(self): self.stop, self.epoch = False, 0
            def end(self):
                self.epoch += 1
                if self.epoch > 450:
                    self.stop = True
                    return
                self.stop = False
            def fit(self, step_made):
                while not self.stop:
                    step_made()
                    self.end()
        def train(step_made): Trainer().fit(step_made)
    """,
    "set-by-a-function-that-somebody-calls": """
        class Trainer:
            def __init__(self): self.stop, self.epoch = False, 0
            def ask(self): self.stop = True
            def begin(self): self.stop = False
            def fit(self, step_made, on_step):
                while True:
                    self.begin()
                    on_step(self)
                    if self.stop:
                        break
                    step_made()
                    if self.epoch > 10**9: self.stop = True
        count = 0
        def train(step_made):
            def ask(trainer):
                global count
                count += 1
                if count > 450: [each.ask() for each in [trainer]]
            Trainer().fit(step_made, ask)
    """,
    "the-same-state-by-another-name": """
        class State:
            def __init__(self): self.epoch, self.stop = 0, False
        class Stop:
            def __call__(self, seen):
                asked = seen
                if asked.epoch > 450: asked.stop = True
        def train(step_made):
            state, hooks = State(), [Stop()]
            now = state
            while not state.stop:
                step_made()
                state.epoch += 1
                for hook in hooks: hook(now)
    """,
    "a-state-made-anew": """
        from dataclasses import dataclass, replace
        @dataclass
        class State:
            epoch: int = 0
            stop: bool = False
        class Stop:
            def __call__(self, seen):
                if seen.epoch > 450: seen.stop = True
                return seen
        def train(step_made):
            state, hooks = State(), [Stop()]
            while not state.stop:
                step_made()
                now = replace(state, epoch=state.epoch + 1)
                for hook in hooks: now = hook(now)
                state = now
    """,
    "counter-wrapped-beyond": """
        def train(step_made):
            step = 0
            while step < 100:
                step_made()
                step = (step + 1) % 101
    """,
    "global-counter": """
        step = 0
        def count():
            global step
            step += 1
        def train(step_made):
            while step < 500:
                step_made()
                count()
    """,
    "a-share-in-a-property": """
        class Trainer:
            def __init__(self): self.history, self.target = [], 0.9999
            @property
            def accuracy(self): return self.history[-1] if self.history else 0.0
            @property
            def good_enough(self): return self.accuracy >= self.target
            def fit(self, step_made):
                while not self.good_enough:
                    step_made()
                    self.history.append(1 - 0.4 / (1 + len(self.history)))
        def train(step_made):
            Trainer().fit(step_made)
    """,
    "a-budget-in-a-dataclass": """
        from dataclasses import dataclass
        @dataclass
        class Budget:
            tokens: int
            used: int = 0
            def spend(self, count): self.used += count
            def exhausted(self): return self.used >= self.tokens
        def train(step_made):
            budget = Budget(100_000)
            while not budget.exhausted():
                step_made()
                budget.spend(7)
    """,
    "a-closure-that-waits": """
        def stopping(patience):
            best, waited = 0.0, 0
            def should_stop(score):
                nonlocal best, waited
                if score > best:
                    best, waited = score, 0
                else:
                    waited += 1
                return waited >= patience
            return should_stop
        def train(step_made):
            should_stop, score = stopping(50), 0.5
            while True:
                step_made()
                score += 0.001
                if should_stop(score):
                    break
    """,
    "a-callback-later-on": """
        class State:
            def __init__(self): self.step, self.stop = 0, False
        class StopAt:
            def __init__(self, last): self.last = last
            def on_log(self, state):
                if state.step == self.last:
                    state.stop = True
        class Engine:
            def __init__(self): self.state, self.callbacks = State(), [StopAt(1000)]
            def one(self, step_made):
                step_made()
                self.state.step += 1
            def run(self, step_made):
                while not self.state.stop:
                    self.one(step_made)
                    if self.state.step % 8 == 0:
                        for callback in self.callbacks: callback.on_log(self.state)
        def train(step_made):
            Engine().run(step_made)
    """,
    "a-callback-that-somebody-else-calls": """
        class State:
            def __init__(self): self.step, self.stop = 0, False
        class OnSignal:
            def ask(self, state): state.stop = True
        class Engine:
            def __init__(self): self.state, self.callbacks = State(), [OnSignal()]
            def run(self, step_made):
                while not self.state.stop:
                    step_made()
                    self.state.step += 1
        def train(step_made):
            Engine().run(step_made)
    """,
    "a-loss-that-falls-slowly": """
        def train(step_made, target=1e-3):
            step, loss = 0, 1.0
            while loss > target:
                step_made()
                step += 1
                loss = 0.15 + 1e-6 * (10_000 - step)
    """,
    "a-rate-that-is-lowered-now-and-then": """
        def train(step_made):
            rate, step = 1e-3, 0
            while rate > 1e-5:
                step_made()
                step += 1
                if step % 5000 == 0:
                    rate = rate / 10
    """,
    "a-validation-loss-of-a-long-epoch": """
        def train(step_made):
            val_loss, epoch = 1.0, 0
            while val_loss > 0.1:
                for batch in range(2000):
                    step_made()
                epoch += 1
                val_loss = 1.0 / epoch
    """,
    "an-exception-of-the-user-s-ends-it": """
        import itertools
        class DoneError(Exception): pass
        def one(step_made, step):
            step_made()
            if step == 10_000:
                raise DoneError
        def train(step_made):
            step, stop = 0, False
            try:
                while not stop:
                    one(step_made, step)
                    step += 1
            except DoneError:
                pass
    """,
    "a-range-with-a-switch-that-is-off": """
        def train(step_made, debug=False):
            for step in range(10**15):
                step_made()
                if debug:
                    break
    """,
    "a-range-that-ends-soon": """
        def train(step_made, budget=1000):
            tokens = 0
            for step in range(2000):
                step_made()
                tokens += 48
                if tokens == budget:
                    break
    """,
    "percents-that-begin-low": """
        def train(step_made):
            accuracy = 0.0
            while accuracy < 98:
                step_made()
                accuracy += 0.0005
    """,
    "a-score-that-is-no-share": """
        def train(step_made):
            reward = 0.0
            while reward < 90:
                step_made()
                reward = 0.9
    """,
    "worse-by-little-is-let-pass": """
        class Stopper:
            def __init__(self, patience=900, delta=0.05):
                self.patience, self.delta, self.best, self.bad = patience, delta, float("inf"), 0
            def stops(self, value):
                if value < self.best:
                    self.best = value
                    self.bad = 0
                elif value > self.best + self.delta:
                    self.bad += 1
                    if self.bad >= self.patience:
                        return True
                return False
        def train(step_made):
            stopper, epoch = Stopper(), 0
            while True:
                step_made()
                epoch += 1
                if stopper.stops(1 + 0.001 * (epoch % 7)):
                    break
    """,
    "a-tensor-that-others-fill": """
        import torch
        def train(step_made):
            stop, step = torch.zeros(()), 0
            while not stop:
                step_made()
                step += 1
                rank_says(stop, step)
        def rank_says(stop, step):
            if step == 590:
                stop.fill_(1)
    """,
    "not-there-yet": """
        def train(step_made, total=10_000):
            step = 0
            while step < total:
                step_made()
                step += 1
    """,
    "or-with-a-flag": """
        class T:
            def __init__(self): self.done, self.step = False, 0
            def check(self): self.done = self.step > 5000
            def run(self, step_made):
                while not self.done or self.step < 100:
                    step_made()
                    self.step += 1
                    self.check()
        def train(step_made): T().run(step_made)
    """,
    "or-with-a-loss": """
        def train(step_made, warm=50):
            step, loss = 0, 10.0
            while step < warm or loss > 1.0:
                step_made()
                step += 1
                loss = loss * 0.999
    """,
    "patience-not-risen-yet": """
        def train(step_made, patience=3):
            best, bad, loss = float("inf"), 0, 100.0
            while True:
                step_made()
                loss -= 0.1
                if loss < best:
                    best, bad = loss, 0
                else:
                    bad += 1
                if bad >= patience:
                    break
    """,
    "flag-not-set-yet": """
        def train(step_made, total=100_000):
            seen, finished = 0, False
            while not finished:
                for _ in range(9):
                    step_made()
                    seen += 48
                    if seen >= total:
                        finished = True
                        break
    """,
    "stopper-that-works": """
        class EarlyStopping:
            def __init__(self, patience): self.patience, self.best, self.bad = patience, float("inf"), 0
            def step(self, value):
                if value < self.best - 1e-3:
                    self.best = value
                    self.bad = 0
                else:
                    self.bad += 1
                return self.bad >= self.patience
        def train(step_made):
            stopper, loss = EarlyStopping(4), 1000.0
            while True:
                for _ in range(5):
                    step_made()
                loss -= 0.1
                if stopper.step(loss):
                    break
    """,
    "stopper-with-a-flag-that-works": """
        class EarlyStopping:
            def __init__(self, patience):
                self.patience, self.counter, self.early_stop, self.lowest = patience, 0, False, float("inf")
            def __call__(self, loss):
                if loss > self.lowest:
                    self.counter += 1
                    if self.counter >= self.patience:
                        self.early_stop = True
                else:
                    self.lowest = loss
                    self.counter = 0
        def train(step_made):
            stopping, loss = EarlyStopping(4), 1000.0
            while True:
                for _ in range(5):
                    step_made()
                loss -= 0.1
                stopping(loss)
                if stopping.early_stop:
                    break
    """,
    "stopper-helped-from-outside": """
        class Stopper:
            def __init__(self): self.count, self.limit = 0, 3
            def tick(self): return self.count > self.limit
        def note(stopper): stopper.count += 1
        def train(step_made):
            stopper = Stopper()
            while True:
                step_made()
                if stopper.tick():
                    break
    """,
    "a-list-that-shrinks": """
        def train(step_made):
            pending = list(range(5000))
            while pending:
                step_made()
                pending.pop()
    """,
    "a-list-as-long-as-before": """
        def train(step_made):
            pending = [1, 2, 3]
            while len(pending) > 0:
                step_made()
                pending.append(pending.pop())
    """,
    "a-state-in-a-dictionary": """
        def advance(state): state["epoch"] = state["n"] // 1000; state["n"] += 1
        def train(step_made):
            state = {"epoch": 0, "n": 0}
            while state["epoch"] < 10:
                step_made()
                advance(state)
    """,
    "an-attribute-of-a-library": """
        import threading
        def train(step_made):
            helper = threading.Thread(target=print)
            while not helper._started._flag:
                step_made()
    """,
    "every-nth": """
        def train(step_made):
            step = 0
            while True:
                step_made()
                step += 1
                if step % 1000 == 999:
                    break
    """,
    "asked-by-call": """
        class Stopper:
            def __call__(self): return False
        def train(step_made):
            stop, step = Stopper(), 0
            while True:
                step_made()
                step += 1
                if stop() or step == 10:
                    break
    """,
    "a-signal-s-flag": """
        running = True
        def handler():
            global running
            running = False
        def train(step_made):
            while running:
                step_made()
    """,
    "bounded-for": """
        def train(step_made):
            for epoch in range(10_000):
                for _ in range(3):
                    step_made()
                    if epoch == -1:
                        break
    """,
    "generator-without-end": """
        def stream(step_made):
            while True:
                step_made()
                yield 1
        def train(step_made):
            it = stream(step_made)
            for _ in range(100_000):
                next(it)
    """,
    "while-true-on-purpose": """
        def train(step_made):
            while True:
                step_made()
    """,
    "and-with-a-loss": """
        def train(step_made, least=20):
            step, loss = 0, 5.0
            while True:
                step_made()
                step += 1
                loss *= 0.9999
                if step > least and loss < 0.1:
                    break
    """,
    "inner-break-outer-bounded": """
        def train(step_made, max_steps=50):
            step = 0
            for epoch in range(100_000):
                for _ in range(9):
                    step_made()
                    step += 1
                    if step >= max_steps:
                        break
    """,
    "as-long-as-a-deque-can-be": """
        from collections import deque
        def train(step_made):
            seen, level, size = deque(maxlen=60), 0, 60
            while level < 200:
                step_made()
                seen.append(1.0)
                if len(seen) >= size and sum(seen) >= 0:
                    level += 1
    """,
    "a-deque-with-another-size-later": """
        from collections import deque
        def train(step_made):
            seen, size = deque(maxlen=500), 1500
            while len(seen) < size:
                step_made()
                seen.append(1.0)
                size = size - 1
    """,
    "resumed": """
        def train(step_made):
            epoch = 40
            while epoch < 60:
                for _ in range(50):
                    step_made()
                epoch += 1
    """,
    "accumulation": """
        class T:
            def __init__(self): self.updates, self.total = 0, 10_000
            def run(self, step_made):
                micro = 0
                while self.updates < self.total:
                    step_made()
                    micro += 1
                    if micro == 64:
                        self.updates += 1
                        micro = 0
        def train(step_made): T().run(step_made)
    """,
    "epoch-counted-elsewhere": """
        class T:
            def __init__(self): self.epoch = 0
            def run(self, step_made):
                while self.epoch < 3:
                    self.one(step_made)
            def one(self, step_made):
                for _ in range(500):
                    step_made()
                self.epoch += 1
        def train(step_made): T().run(step_made)
    """,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_names_a_loop_that_cannot_end(tmp_path: Path, name: str) -> None:
    found, made = judged(tmp_path, ENDLESS[name])
    assert made == STEPS, "the script ends by itself: the test would show nothing"
    assert len(found) == 1, found
    assert found[0].where.file == str(tmp_path / "script.py")
    assert found[0].severity == "error"


@pytest.mark.parametrize("name", ENDING)
def test_is_silent_about_a_loop_that_may_end(tmp_path: Path, name: str) -> None:
    found, _ = judged(tmp_path, ENDING[name])
    assert not found, found[0].title


def test_a_counter_that_an_inner_loop_takes_for_its_own(tmp_path: Path) -> None:
    source = """
    def train(step_made):
        t = 0
        while t < 5000:
            rewards = []
            for _ in range(8):
                rewards.append(t)
                t += 1
            for {} in reversed(range(8)):
                rewards[{}] *= 0.9
            for _ in range(3):
                step_made()
    """
    ((finding,), _) = judged(tmp_path, source.replace("{}", "t"))
    assert "`t` is reset in every iteration" in finding.title
    assert judged(tmp_path, source.replace("{}", "k")) == ([], STEPS)


MEASURED = """
    import copy, os, torch
    from torch import nn
    def share(model, x):
        with torch.no_grad():
            return (model(x) > 0).float().mean().item()
    def drawn(model):
        return share(model, torch.randn(8, 2))
    class Held:
        def __init__(self): self.made = 0
        def now(self, x):
            self.made += 1
            return float(x.sum() > 9)
    def train(step_made):
        net, x, made, held = nn.Linear(2, 1), torch.zeros(8, 2), 0, Held()
        nn.init.zeros_(net.bias)
        late, dropped = copy.deepcopy(net), nn.Sequential(nn.Linear(2, 1), nn.Dropout())
        nn.init.constant_(dropped[0].bias, -9.0)
        calm = copy.deepcopy(dropped).eval()
        right = 0.0
        while right < 0.5:
            step_made()
            made += 1
            {}
"""
MEASURES = {
    "a-copy": ("right = share(late, x)", True),
    "in-place": ("with torch.no_grad(): right = (late(x) > 0).float().mean().item()", True),
    "what-is-trained": ("net.weight.data += 0.0; net.bias.data -= 0.001; right = share(net, x)", False),
    "a-copy-renewed-late": (
        "if made % 599 == 0: late.load_state_dict(net.state_dict())\n            right = share(late, x)",
        False,
    ),
    "a-copy-renewed-later-by-parts": (
        "for p, q in zip(late.parameters(), net.parameters()): p.data.copy_(q) if made > 999 else None\n"
        "            right = share(late, x)",
        False,
    ),
    "what-is-drawn": ("right = drawn(dropped[0])", False),
    "without-its-dropout": ("right = share(calm, x)", True),
    "with-dropout": ("right = share(dropped, x)", False),
    "at-times": ("if made % 7 == 0: right = share(late, x)", False),
    "of-a-file": ("right = float(os.path.exists('stop')) + share(late, x)", False),
    "by-an-object": ("right = held.now(x)", False),
}


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_of_what_no_step_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(stays, "MIN_STEPS_MEASURED", 300)
    statement, endless = MEASURES[name]
    found, made = judged(tmp_path, MEASURED.replace("{}", statement))
    assert made == STEPS
    assert [each.title for each in found if "no step changes" in each.title] == [each.title for each in found]
    assert bool(found) == endless
