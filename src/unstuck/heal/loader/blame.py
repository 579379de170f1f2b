"""Which sample a lost worker is to be blamed on: the one in work is tried alone, and only then counts as bad."""

from __future__ import annotations

from dataclasses import replace

from .care import COLLATING, FETCHING, SENDING, UNKNOWN
from .quarantine import BadSampleError, LoaderError, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .seat import Loss, Seat, Task
    from .worker_pool import WorkerPool

WHOLE_FAILURES = 2  # losses of a batch beyond `retries` that no single sample explains, after which all of it is bad
STREAM_FAILURES = 1  # losses at one item of a stream, beyond `retries`: chance may hit it as well
DOING = {FETCHING: "fetching", COLLATING: "collating", SENDING: "sending"}
OTHER_SEED = " Its random augmentations differ from here on."


def without_culprit(loss: Loss) -> Loss:
    return replace(loss, sent=None, position=UNKNOWN)


def said(loss: Loss, seeds: bool) -> str:
    return f"worker {loss.worker} (pid {loss.pid}) {loss.cause}{_at(loss)}; replaced it.{OTHER_SEED if seeds else ''}"


def _at(loss: Loss) -> str:
    if loss.sent is None or loss.sent.task is None:
        return ""
    task, position = loss.sent.task, loss.position if loss.sent.alone is None else loss.sent.alone
    if 0 <= position < len(task.samples) and task.samples[position] is not None:
        alone = ", fetched alone" if loss.sent.alone is not None else ""
        return f" at sample {shown(task.samples[position])} of batch {task.number}{alone}"
    return f" while {DOING.get(loss.phase, 'at')} batch {task.number}"


def suspects(pool: WorkerPool, seat: Seat, loss: Loss) -> list[int]:
    """Positions of the batch that was in work which are to be tried alone before it. Condemns those that failed so."""
    if loss.sent is None or loss.sent.task is None:
        return []
    task, retries = loss.sent.task, pool.care.retries
    if pool.iterable:
        _judge_stream(pool, seat, loss)
        return []
    only = task.remaining[0] if len(task.remaining) == 1 else None
    position = loss.sent.alone if loss.sent.alone is not None else only
    if position is not None:
        failures = task.failures[position] = task.failures.get(position, 0) + 1
        if failures < retries + (position == only):
            return [] if position == only else [position]
        _condemn(pool, task, [position], loss)
        return []
    position = loss.position
    if position != UNKNOWN and position not in task.cleared:
        if retries:
            return [position]
        _condemn(pool, task, [position], loss)
        return []
    return _judge_whole(pool, task, loss)


def _judge_whole(pool: WorkerPool, task: Task, loss: Loss) -> list[int]:
    """The batch as such: its samples in turn, then, if each can be had alone, all of them together."""
    task.whole_failures += 1
    untried = [position for position in task.remaining if position not in task.cleared]
    if task.whole_failures > pool.care.retries + WHOLE_FAILURES:
        _condemn(pool, task, task.remaining, loss)
        return []
    return untried if task.whole_failures > 1 or loss.phase == FETCHING else []


def _condemn(pool: WorkerPool, task: Task, positions: list[int], loss: Loss) -> None:
    together = len(positions) > 1
    what = f"{'it' if loss.hung_for is not None else 'its worker'} {loss.cause}"
    if together:
        what += ", each time with all of its batch"
    if pool.care.keeps_going:
        for position in positions:
            pool.leave_out(task, position, loss.reason, what, loss.stack, loss.worker)
        return
    samples = ", ".join(shown(task.samples[position]) for position in positions[:8])
    stack = f"\n{loss.stack}" if loss.stack else ""
    task.refused = True
    pool.refuse(
        task,
        BadSampleError(
            f"sample {samples} of batch {task.number} is bad: {what} (worker {loss.worker}). "
            f'on_bad_sample="skip" would go on without it.{stack}'
        ),
    )


def _judge_stream(pool: WorkerPool, seat: Seat, loss: Loss) -> None:
    """A worker in its place reads the stream again up to there. What it cannot do is step over an item."""
    seat.stumbles[seat.consumed] = stumbles = seat.stumbles.get(seat.consumed, 0) + 1
    if stumbles > pool.care.retries + STREAM_FAILURES:
        pool.fail(
            LoaderError(
                f"the stream of worker {seat.number} cannot be read beyond item {seat.consumed}: {stumbles} workers "
                f"were lost there, the last one {loss.cause}. An item of an IterableDataset cannot be left out, only "
                f"one of a map-style dataset can.\n{loss.stack}".strip()
            )
        )
