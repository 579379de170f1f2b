"""The one table of messages. The higher, the nearer to the cause: of several in a text the highest comes first."""

from __future__ import annotations

from unstuck.explain import end_messages, resource_messages, start_messages, value_messages
from unstuck.explain.message import Message

MESSAGES: tuple[Message, ...] = (
    # what ran out, wherever it shows
    resource_messages.OPEN_FILES,
    resource_messages.SHARED_MEMORY_ALLOCATE,
    resource_messages.SHARED_MEMORY_OPEN,
    resource_messages.MEMORY_MAPS,
    resource_messages.NO_SPACE,
    resource_messages.CHECKPOINT_WRITE,
    resource_messages.CHECKPOINT_READ,
    resource_messages.OOM_KILL,
    resource_messages.CUDA_OUT_OF_MEMORY,
    resource_messages.HOST_MEMORY,
    resource_messages.NEW_THREAD,
    resource_messages.UNAVAILABLE,
    # a batch that was lost on its way looks like a worker that could not start
    start_messages.BATCH_NOT_SENT,
    start_messages.BOOTSTRAPPING,
    start_messages.CONTEXT_SET,
    start_messages.CANNOT_PICKLE,
    start_messages.DAEMONIC,
    start_messages.CUDA_IN_FORK,
    start_messages.NO_SCRIPT,
    # values, before the device that tripped over them
    value_messages.TARGET,
    value_messages.INDEX,
    value_messages.ONE_VALUE,
    value_messages.STACK,
    value_messages.SHAPES,
    value_messages.NOT_FINITE,
    value_messages.ZERO_TO_ONE,
    value_messages.BACKWARD_TWICE,
    value_messages.NO_GRAD,
    value_messages.IN_PLACE,
    value_messages.NO_SAMPLES,
    value_messages.DEVICE_ASSERT,
    value_messages.ILLEGAL_ACCESS,
    value_messages.SAME_DEVICE,
    value_messages.NO_DEVICE,
    # ranks: what went wrong between them, then who noticed
    end_messages.MISMATCH,
    end_messages.UNUSED,
    end_messages.WORLD,
    end_messages.COLLECTIVE_TIMEOUT,
    # workers: how one died, then that one died
    start_messages.WORKER_BUS_ERROR,
    start_messages.WORKER_CRASHED,
    start_messages.WORKER_KILLED,
    start_messages.WORKER_STOPPED,
    start_messages.WORKER_EXIT_CODE,
    start_messages.WORKER_RAISED,
    start_messages.PIN_THREAD,
    start_messages.WORKER_EXITED,
    start_messages.BATCH_LOST,
    start_messages.TIMED_OUT,
    # how the process ended, then who only saw it end
    end_messages.BUS_ERROR,
    end_messages.CRASHED,
    end_messages.KILLED,
    end_messages.ENDED,
    end_messages.PEER_GONE,
    end_messages.CHILD_FAILED,
    # warnings, which a log may have without harm
    value_messages.TARGET_SIZE,
    value_messages.REPORTED_LENGTH,
    value_messages.SCHEDULER,
    start_messages.FORK_WITH_THREADS,
    end_messages.INTERRUPTED,
    end_messages.TRACEBACK,
)


def messages_of(rule: str) -> tuple[Message, ...]:
    """The messages that can be this rule."""
    return tuple(message for message in MESSAGES if any(rule == name for name, _ in message.can_be))


def message_named(name: str) -> Message | None:
    return next((message for message in MESSAGES if message.name == name), None)
