"""Reasons for which standing still does not count: read off the stacks of a look."""

from __future__ import annotations

from unstuck.model import Look, Process, Thread

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


def excuse(look: Look, pid: int) -> str:
    """Why the standstill of `pid` does not count; empty if it does."""
    process = next((p for p in look.processes if p.pid == pid), None)
    thread = process.main_thread if process else None
    if process is None or thread is None:
        return ""
    if thread.state in "Tt" or (thread.wait and thread.wait.kind == "stopped"):
        return "it is stopped (SIGSTOP, Ctrl-Z, the freezer or a debugger)"
    if _on_stack(thread, DEBUGGING):
        return "it is at a debugger prompt"
    if _on_stack(thread, (LOCK_FILE,)):
        return ""
    if compiles(thread):
        return "it is compiling"
    if _on_stack(thread, SAVING) and _working(process):
        return "it is saving or loading a checkpoint"
    return ""


def compiles(thread: Thread) -> bool:
    """A compiler is at work; that its modules are being imported is something else."""
    frames = [frame for frame in thread.frames if frame.function != "<module>"]
    return any(part in frame.file for frame in frames for part in COMPILING)


def _on_stack(thread: Thread, parts: tuple[str, ...]) -> bool:
    return any(part in frame.file for frame in thread.frames for part in parts)


def _working(process: Process) -> bool:
    """Writing or reading a file, or computing: not waiting for a lock, a pipe or a person."""
    wait = process.main_thread.wait if process.main_thread else None
    return wait is None or wait.kind in ("running", "file", "unknown", "other", "sleep")
