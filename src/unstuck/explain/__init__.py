"""The one table of messages. What stands higher is nearer to the cause, and comes first where a text has several."""

from __future__ import annotations

from unstuck.explain import device, files, memory, numerics, ranks, signals, start, values, workers
from unstuck.explain.message import Message

MESSAGES: tuple[Message, ...] = (
    # what ran out or could not be had, wherever it was said
    files.OPEN_FILES,
    files.SHARED_MEMORY_ALLOCATE,
    files.SHARED_MEMORY_OPEN,
    files.MEMORY_MAPS,
    files.NO_SPACE,
    files.CHECKPOINT_WRITE,
    files.CHECKPOINT_READ,
    memory.OOM_KILL,
    memory.CUDA_OUT_OF_MEMORY,
    memory.HOST_MEMORY,
    memory.NEW_THREAD,
    memory.UNAVAILABLE,
    # a batch that was lost on its way looks like a worker that could not start
    workers.BATCH_NOT_SENT,
    start.BOOTSTRAPPING,
    start.CONTEXT_SET,
    start.CANNOT_PICKLE,
    start.DAEMONIC,
    start.CUDA_IN_FORK,
    start.NO_SCRIPT,
    # values, before the device that tripped over them
    values.TARGET,
    values.INDEX,
    values.ONE_VALUE,
    values.STACK,
    values.SHAPES,
    numerics.NOT_FINITE,
    numerics.ZERO_TO_ONE,
    numerics.BACKWARD_TWICE,
    numerics.NO_GRAD,
    numerics.IN_PLACE,
    values.NO_SAMPLES,
    device.DEVICE_ASSERT,
    device.ILLEGAL_ACCESS,
    device.SAME_DEVICE,
    device.NO_DEVICE,
    # ranks: what went wrong between them, then who noticed
    ranks.MISMATCH,
    ranks.UNUSED,
    ranks.WORLD,
    ranks.COLLECTIVE_TIMEOUT,
    # workers: how one died, then that one died
    workers.WORKER_BUS_ERROR,
    workers.WORKER_CRASHED,
    workers.WORKER_KILLED,
    workers.WORKER_STOPPED,
    workers.WORKER_EXIT_CODE,
    workers.WORKER_RAISED,
    workers.PIN_THREAD,
    workers.WORKER_EXITED,
    workers.BATCH_LOST,
    workers.TIMED_OUT,
    # how the process ended, then who only saw it end
    signals.BUS_ERROR,
    signals.CRASHED,
    signals.KILLED,
    signals.ENDED,
    ranks.PEER_GONE,
    ranks.CHILD_FAILED,
    # warnings, which a log may have without harm
    values.TARGET_SIZE,
    values.REPORTED_LENGTH,
    numerics.SCHEDULER,
    start.FORK_WITH_THREADS,
    signals.INTERRUPTED,
    signals.TRACEBACK,
)


def messages_of(rule: str) -> tuple[Message, ...]:
    """The messages that can be this rule."""
    return tuple(message for message in MESSAGES if any(rule == name for name, _ in message.can_be))


def message_named(name: str) -> Message | None:
    return next((message for message in MESSAGES if message.name == name), None)
