"""What looks say about a standstill: whether anything moved between them, and whether it counts at all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from unstuck.model import Frame, Look, Process, Thread

IO_BYTES = 4096  # more than this between two looks is movement
MEMORY_BYTES = 1 << 20
CHILD_CPU_SECONDS = 0.05

COMPILING = (
    "torch/_dynamo/convert_frame.py",
    "torch/_inductor/compile_fx.py",
    "torch/_inductor/async_compile.py",
    "torch/_inductor/runtime/triton_heuristics.py",
    "torch/_functorch/_aot_autograd/graph_compile.py",
    "torch/jit/_script.py",
    "torch/jit/_trace.py",
    "torch/onnx/",
    "torch/export/",
    "triton/compiler/",
    "triton/runtime/autotuner.py",
)
SAVING = ("torch/serialization.py", "torch/distributed/checkpoint/", "safetensors/")
DEBUGGING = (
    "/pdb.py",
    "/bdb.py",
    "IPython/terminal/debugger.py",
    "IPython/core/debugger.py",
    "ipdb/",
    "pdbpp",
    "pudb/",
)
LOCK_FILE = "torch/utils/file_baton.py"  # waits for a lock file while "compiling" an extension: that one counts


def still_for(looks: Sequence[Look], pid: int) -> float:
    """Seconds, up to the last look, for which successive looks with stacks showed no movement in `pid` or below it."""
    with_stacks = [look for look in looks if look.stacks]
    still = 0.0
    for later, earlier in pairwise(reversed(with_stacks)):
        before, after = _family(earlier, pid), _family(later, pid)
        if before.keys() != after.keys() or any(_moved(before[member], after[member]) for member in before):
            break
        still = with_stacks[-1].at - earlier.at
    return still


def _family(look: Look, pid: int) -> dict[int, Process]:
    """The process and its descendants."""
    family: dict[int, Process] = {}
    for process in look.processes:  # in tree order: parents come first
        if process.pid == pid or process.ppid in family:
            family[process.pid] = process
    return family


def _moved(before: Process, after: Process) -> bool:
    return (
        after.io_bytes - before.io_bytes > IO_BYTES
        or abs(after.rss - before.rss) > MEMORY_BYTES
        or after.children_cpu - before.children_cpu > CHILD_CPU_SECONDS
        or path_of(before) != path_of(after)
    )


def path_of(process: Process) -> tuple[tuple[str, str], ...]:
    """Functions of the user on the main thread's stack: a loop changes lines, not these."""
    thread = process.main_thread
    return tuple((f.file, f.function) for f in thread.frames if f.user) if thread else ()


def excuse(look: Look, pid: int) -> str:
    """Why the standstill of `pid` does not count; empty if it does."""
    process = next((p for p in look.processes if p.pid == pid), None)
    thread = process.main_thread if process else None
    if thread is None:
        return ""
    kind = thread.wait.kind if thread.wait else "unknown"
    if thread.state in "Tt" or kind == "stopped":
        return "it is stopped (SIGSTOP, Ctrl-Z, the freezer or a debugger)"
    if on_stack(thread.frames, DEBUGGING):
        return "it is at a debugger prompt"
    if on_stack(thread.frames, (LOCK_FILE,)):
        return ""
    if compiles(thread):
        return "it is compiling"
    # Writing or reading a file, or computing: not waiting for a lock, a pipe or a person.
    if on_stack(thread.frames, SAVING) and kind in ("running", "file", "unknown", "other", "sleep"):
        return "it is saving or loading a checkpoint"
    return ""


def compiles(thread: Thread) -> bool:
    """A compiler is at work; that its modules are being imported is something else."""
    return on_stack([frame for frame in thread.frames if frame.function != "<module>"], COMPILING)


def on_stack(frames: Sequence[Frame], files: tuple[str, ...]) -> bool:
    """A frame is in one of these files, which are parts of paths."""
    return any(part in frame.file for frame in frames for part in files)
