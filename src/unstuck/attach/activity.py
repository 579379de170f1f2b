"""The word for what a stack is doing: waiting for data, computing, compiling, saving, validating, and so on."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from unstuck.attach.inferred import seat_of
from unstuck.model import Frame, Process, Thread
from unstuck.observer.torch_files import FETCH, LOADER, MODULE, OPTIMIZER, WORKER, is_backward
from unstuck.rules.hang.waiting import BARRIER, EVENT, FUTURE, GET, JOIN, PUT, awaited, in_collective
from unstuck.rules.words import place
from unstuck.supervise.progress import DEBUGGING, SAVING, compiles

_VALIDATES = re.compile(r"(^|_)(valid|validate|validation|evaluate|evaluation|eval|test)(_|$)|EvaluationLoop", re.I)
_TOKENISES = re.compile(r"tokeni[sz]|sentencepiece|bpe", re.I)
_DOWNLOADS = ("/urllib/request.py", "/urllib3/", "/requests/", "/huggingface_hub/", "/http/client.py", "/botocore/")
_READS = re.compile(
    r"/(pandas/io|pyarrow|h5py|PIL|torchvision/io|cv2|imageio|soundfile|torchaudio|webdataset|datasets|zarr)/"
    r"|/(csv|json/(__init__|decoder)|gzip|zipfile(/__init__)?|tarfile|pickle|numpy/lib/_?npyio(_impl)?)\.py$"
)
_WAITS_FOR_CHILD = ("/subprocess.py", "multiprocessing/popen_fork.py", "multiprocessing/popen_spawn_posix.py")
_POOL = ("multiprocessing/pool.py", "concurrent/futures/process.py", "concurrent/futures/_base.py")
_LOGS = re.compile(r"/(tensorboard|wandb|mlflow|neptune|comet_ml|tqdm|logging)/")


OWN_CODE = "computing in its own code"
FORWARD = "forward pass"
LEARNING = ("backward pass", "optimizer step")
_QUEUED = {
    GET: "waiting for data from a queue",
    PUT: "waiting to hand something to a full queue",
    EVENT: "waiting for another thread",
    FUTURE: "waiting for work it handed out",
    JOIN: "waiting for another thread or process to end",
    BARRIER: "waiting at a barrier",
}


@dataclass(frozen=True)
class Activity:
    word: str
    """What it is doing, as one says it after "it is": "waiting for data"."""


def activity(process: Process | None, thread: Thread | None) -> Activity:
    """Of the main thread of a training process; `process` where it is known."""
    if thread is None or not thread.frames:
        return Activity(_kernel_word(thread) or "running where it cannot be seen")
    frames = thread.frames
    if thread.wait is not None and thread.wait.kind == "stopped":
        return Activity("stopped")
    if _any(frames, DEBUGGING):
        return Activity("at a debugger prompt")
    inner = _special(frames)
    if inner:
        return Activity(inner)
    step = _step_word(frames)
    validating = any(_VALIDATES.search(f.function.rpartition(".")[2]) for f in frames if not _of_torch(f))
    if validating and step not in LEARNING:
        return Activity(f"validating ({step})" if step else "validating")
    if step:
        return Activity(step)
    return Activity(_other_word(process, thread))


def _special(frames: tuple[Frame, ...]) -> str:
    """What has a name of its own wherever it happens."""
    if compiles(Thread(0, frames=frames)):
        return "compiling"
    if _any(frames, SAVING):
        loads = any(f.function.rpartition(".")[2] in ("load", "_load", "load_file") for f in frames)
        return "loading a checkpoint" if loads else "saving a checkpoint"
    if any(f.file.startswith("<frozen importlib") for f in frames[:12]):
        return "importing modules"
    return ""


def _step_word(frames: tuple[Frame, ...]) -> str:
    """The innermost part of a training step on the stack."""
    thread = Thread(0, frames=frames)
    if in_collective(thread):
        return "waiting for other ranks"
    for frame in frames:
        if frame.file.endswith(FETCH):
            return "loading data in the main process"
        if frame.file.endswith(LOADER):
            last = frame.function.rpartition(".")[2]
            if last == "_next_index":
                return "drawing from the sampler"
            return "starting workers" if last == "__init__" else "waiting for data"
        if OPTIMIZER in frame.file:
            return "optimizer step"
        if is_backward(frame):
            return "backward pass"
        if frame.file.endswith(MODULE):
            return FORWARD
    return ""


def _other_word(process: Process | None, thread: Thread) -> str:
    frames = thread.frames
    user = next((f for f in frames if f.user), None)
    if any(_TOKENISES.search(f.function) or _TOKENISES.search(f.file.rpartition("site-packages/")[2]) for f in frames):
        return "tokenising"
    if _any(frames, _DOWNLOADS):
        return "downloading"
    kind = thread.wait.kind if thread.wait else ""
    if kind == "child" or _any(frames[:4], _WAITS_FOR_CHILD):
        return "waiting for a child process"
    if _any(frames, _POOL):
        return "waiting for a pool of its own workers"
    library = frames[: frames.index(user)] if user in frames else frames
    if library and (queued := awaited(thread)) in _QUEUED:
        return _QUEUED[queued]
    if any(_READS.search(f.file) for f in library):
        return "reading data"
    if any(_LOGS.search(f.file) for f in library):
        return "writing its log"
    if kind in ("running", "") or (process is not None and kind == "unknown"):
        return f"{OWN_CODE} ({os.path.basename(user.file)}, {user.function})" if user else "computing"
    return _kernel_word(thread) + (f" ({place(user)})" if user else "")


_KERNEL_WORDS = {
    "running": "computing",
    "lock": "waiting for another thread",
    "shared-lock": "waiting for a lock between processes",
    "file-lock": "waiting for a file lock",
    "pipe-read": "waiting to read from another process",
    "pipe-write": "waiting to write to another process",
    "child": "waiting for a child process",
    "sleep": "sleeping",
    "terminal-read": "waiting for somebody to type",
    "socket": "waiting on the network",
    "poll": "waiting for something to happen",
    "file": "reading or writing a file",
    "device": "waiting for the accelerator",
    "stopped": "stopped",
}


def _kernel_word(thread: Thread | None) -> str:
    wait = thread.wait if thread else None
    return _KERNEL_WORDS.get(wait.kind, "waiting") if wait else ""


def worker_word(process: Process) -> str:
    """What a DataLoader worker is at."""
    thread = process.main_thread
    if thread is None or not thread.frames:
        return _kernel_word(thread) or "cannot be seen"
    seat = seat_of(thread)
    if seat.collating:
        return "collating a batch"
    if seat.fetching:
        if seat.sample is not None:
            return f"making sample {seat.sample}"
        return f"making sample {seat.sample_key}" if seat.sample_key else "making a batch"
    if any(f.file.endswith(WORKER) for f in thread.frames):
        queued = any(f.function.endswith(("put", "_feed")) for f in thread.frames)
        return "handing over a batch" if queued else "idle, nothing to do"
    return "starting"


def helper_word(process: Process) -> str:
    """What another process of the tree is at, in a few words."""
    thread = process.main_thread
    user = next((f for f in thread.frames if f.user), None) if thread else None
    word = _kernel_word(thread) or ("ended" if thread is None or thread.state == "Z" else "running")
    return f"{word} ({place(user)})" if user else word


def _any(frames: tuple[Frame, ...], parts: tuple[str, ...]) -> bool:
    return any(part in frame.file for frame in frames for part in parts)


def _of_torch(frame: Frame) -> bool:
    return "/torch/" in frame.file and "/site-packages/" in frame.file
