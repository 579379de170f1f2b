"""Seams: how processes and threads end, what children are handed and how they ended. Of the standard library only."""

from __future__ import annotations

import atexit
import os
import sys
from time import monotonic_ns

from .. import attempts, flight, guard, journal, signals
from .. import layout as at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import ExceptHookArgs
    from types import FrameType
    from typing import Any, NoReturn


class Pickles:
    """What new processes were handed as a pickle (spawn, forkserver) since `begin`: measured where it is made."""

    __slots__ = ("largest", "told", "took")

    def __init__(self) -> None:
        self.told = 0
        self.begin()

    def begin(self) -> None:
        self.largest = self.took = 0
        """Bytes of the largest; nanoseconds for all."""


pickles = Pickles()


def emit(event: str, *arguments: Any) -> None:
    """Loaded when something ends: a script that only ends well needs no dispatcher."""
    from .. import dispatch

    dispatch.emit(event, *arguments)


def process_failed(error: BaseException, event: str = "process_failed") -> None:
    """Where no descriptor is left, and the process may well end of that, ours are given up: to load is to open."""
    try:
        os.close(os.open(attempts.OURS, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as fault:
        if fault.errno in journal.NONE_LEFT:
            signals.disarm()
    emit(event, error)


def install() -> None:
    original = os._exit

    def _exit(status: int) -> NoReturn:
        try:
            frame = sys._getframe(1)
            if "/multiprocessing/" not in frame.f_code.co_filename:  # its own way of ending its children
                emit("left_by_exit", status, frame)
            elif flight.words[at.W_FORMING]:  # a rank that was forked
                end.leaving()
        except Exception as fault:
            guard.off("os._exit", fault)
        original(status)

    os._exit = _exit

    def remove() -> None:
        if os._exit is _exit:
            os._exit = original

    guard.on("os._exit", remove)
    atexit.register(end.leaving)
    guard.on("end", lambda: atexit.unregister(end.leaving))


class End:
    """The interpreter's own exit."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = False

    def leaving(self) -> None:
        """The interpreter still knows the exception it printed: no hook of the user's is touched."""
        try:
            error = getattr(sys, "last_value", None)
            # Not of Ctrl-C: what we import here may use eval, after which Python would no longer die of the signal.
            if error is not None and type(error) is not KeyboardInterrupt and not self.left and not _at_a_prompt():
                self.left = True
                process_failed(error)
            self.write_the_rest()
            flight.enter(at.ENDED)
            flight.words[at.W_ENDED] = 1
        except Exception as fault:
            guard.off("end", fault)

    @staticmethod
    def write_the_rest() -> None:
        """Probes write what they have not written yet."""
        recorder = guard.__package__
        for name in ("hooks.backward", "stepping", "dispatch"):
            module = sys.modules.get(f"{recorder}.{name}")
            if module is not None:
                module.last()


end = End()


def _at_a_prompt() -> bool:
    """A person types the commands: the last error was one of them, and did not end anything."""
    return hasattr(sys, "ps1") or hasattr(sys.modules.get("builtins"), "__IPYTHON__")


def install_threads(threading: Any) -> None:
    original = threading.excepthook

    def excepthook(arguments: ExceptHookArgs, /) -> Any:
        try:
            if arguments.exc_type is not SystemExit:
                emit("thread_failed", arguments.exc_value, arguments.thread)
        except Exception as fault:
            guard.off("thread ends", fault)
        return original(arguments)

    threading.excepthook = excepthook

    def remove() -> None:
        if threading.excepthook is excepthook:
            threading.excepthook = original

    guard.on("thread ends", remove)


sends: list[Any] = [0, None]
"""In a forked process: whether what it sends is looked at, and its object. In others nobody does."""


def look_at_sent(message: Any, pickled: Any) -> None:
    """The workers of a DataLoader have probes of their own."""
    if flight.words[at.W_WORKER] != at.NONE:
        sends[0] = 0
    else:
        emit("child_sends", message, pickled, sends[1], sends)


def install_starts(module: Any) -> None:
    """`module` is multiprocessing.process. A new interpreter (spawn) calls this as soon as all is imported."""
    original = module.BaseProcess._bootstrap

    def _bootstrap(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            if not flight.words[at.W_FORKED]:
                from ..records.loaders import ProcessReady

                journal.write(ProcessReady(parent=os.getppid(), began=flight.words[at.W_BEGAN] / 1e9))
            elif "torch" in sys.modules:
                sends[:] = 1, self
        except Exception as fault:
            guard.off("starts", fault)
        return original(self, *arguments, **options)

    module.BaseProcess._bootstrap = _bootstrap
    guard.on("starts", lambda: setattr(module.BaseProcess, "_bootstrap", original))


def install_children(util: Any) -> None:
    """multiprocessing ends a child's work with this call, in a `finally`: an exception on its way can be seen."""
    original = util._exit_function

    def _exit_function(*arguments: Any, **options: Any) -> Any:
        try:
            error = sys.exc_info()[1]
            code = error.code if type(error) is SystemExit else 1
            good = code is None or (type(code) is int and code == 0)
            if error is not None and type(error) is not KeyboardInterrupt and not good:
                process_failed(error)
        except Exception as fault:
            guard.off("children's ends", fault)
        return original(*arguments, **options)

    util._exit_function = _exit_function
    guard.on("children's ends", lambda: setattr(util, "_exit_function", original))


def install_tasks(module: Any) -> None:
    """`module` is multiprocessing.pool or concurrent.futures.process: what a task raised, while its frames are there.
    The process that asked for it gets the exception without them."""
    name = next(name for name in ("ExceptionWithTraceback", "_ExceptionWithTraceback") if hasattr(module, name))
    wrapper = getattr(module, name)
    original = wrapper.__init__

    def __init__(self: Any, exc: Any, tb: Any) -> None:
        try:
            if issubclass(type(exc), Exception):
                process_failed(exc, "task_failed")
        except Exception as fault:
            guard.off(f"tasks {module.__name__}", fault)
        original(self, exc, tb)

    wrapper.__init__ = __init__
    guard.on(f"tasks {module.__name__}", lambda: setattr(wrapper, "__init__", original))


def install_exit_codes(module: Any) -> None:
    """Exit codes of children as they are reaped: later the objects that knew them are gone."""
    original = module.Popen.__dict__["poll"]

    def poll(self: Any, *arguments: Any, **options: Any) -> Any:
        known = self.returncode
        code = original(self, *arguments, **options)
        if code and known is None:
            try:
                emit("child_ended", self.pid, code)
            except Exception as fault:
                guard.off("exit codes", fault)
        return code

    module.Popen.poll = poll
    guard.on(f"exit codes {module.__name__}", lambda: setattr(module.Popen, "poll", original))


def install_commands(module: Any) -> None:
    """`module` is subprocess: the exit codes of what a launcher starts, which nobody else can ask for."""
    original = module.Popen._handle_exitstatus

    def _handle_exitstatus(self: Any, *arguments: Any, **options: Any) -> Any:
        answer = original(self, *arguments, **options)
        if self.returncode and sys.modules.get("torch.distributed.elastic") is not None:
            try:
                emit("child_ended", self.pid, self.returncode)
            except Exception as fault:
                guard.off("exit codes subprocess", fault)
        return answer

    module.Popen._handle_exitstatus = _handle_exitstatus
    guard.on("exit codes subprocess", lambda: setattr(module.Popen, "_handle_exitstatus", original))


MOST_TOLD = 400  # lines about starts of processes; two of each


def _starting(frame: FrameType) -> None:
    from .. import user_code
    from ..records.loaders import ProcessStarting

    journal.write(ProcessStarting(site=user_code.site_of(frame), step=flight.steps()))


def install_pickles(module: Any) -> None:
    """`module` is multiprocessing.reduction. Nothing is pickled a second time."""
    original = module.dump

    def dump(obj: Any, file: Any, protocol: Any = None) -> Any:
        plain, began = type(file).__name__ == "BytesIO", monotonic_ns()
        before = file.tell() if plain else 0
        answer = original(obj, file, protocol)
        if plain:
            pickles.largest = max(pickles.largest, file.tell() - before)
            pickles.took += monotonic_ns() - began
            if pickles.told < MOST_TOLD:
                pickles.told += 1
                guard.attempt("starting", _starting, sys._getframe(1))
        return answer

    module.dump = dump
    guard.on("pickles", lambda: setattr(module, "dump", original))


LARGE = 1 << 18  # bytes of a message that is looked at


def install_messages(module: Any) -> None:
    """`module` is multiprocessing.connection. The first large message loads what measures them."""
    pickler = module._ForkingPickler
    as_written = pickler.__dict__["dumps"]
    original = as_written.__func__

    def dumps(kind: Any, obj: Any, protocol: Any = None) -> Any:
        answer = original(kind, obj, protocol)
        if sends[0]:
            guard.attempt("first sent", look_at_sent, obj, answer)
        if len(answer) >= LARGE and pickler.__dict__["dumps"] is ours:
            guard.attempt("messages", measure, obj, len(answer))
        return answer

    def measure(obj: Any, size: int) -> None:
        from . import messages

        remove()
        messages.install(module)
        messages.messages.sent(obj, size)

    def remove() -> None:
        if pickler.__dict__["dumps"] is ours:
            pickler.dumps = as_written

    def silence() -> None:
        sends[:] = 0, None

    ours = pickler.dumps = classmethod(dumps)
    guard.on("large messages", remove)
    guard.on("first sent", silence)
