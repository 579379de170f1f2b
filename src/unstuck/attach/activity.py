"""The words for what a process is doing: waiting for data, computing, compiling, saving, validating, and so on."""

from __future__ import annotations

import os
import re

from unstuck.attach.inferred import loader_work
from unstuck.model import Frame, Process, Thread
from unstuck.observer.torch_files import FETCH, LOADER, MODULE, OPTIMIZER, WORKER, is_backward
from unstuck.rules.hang.waiting import BARRIER, EVENT, FUTURE, GET, JOIN, PUT, awaited, in_collective
from unstuck.rules.words import place
from unstuck.supervise.progress import DEBUGGING, SAVING, compiles, on_stack

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


def activity(thread: Thread | None) -> str:
    """What the main thread of a training process is doing, as one says it after "it is"."""
    if thread is None or not thread.frames:
        return _kernel_word(thread) or "running where it cannot be seen"
    if thread.wait is not None and thread.wait.kind == "stopped":
        return "stopped"
    special = _special(thread)
    if special:
        return special
    step = _step_word(thread)
    own = [frame for frame in thread.frames if not ("/torch/" in frame.file and "/site-packages/" in frame.file)]
    validating = any(_VALIDATES.search(frame.function.rpartition(".")[2]) for frame in own)
    if validating and step not in LEARNING:
        return f"validating ({step})" if step else "validating"
    return step or _other_word(thread)


def _special(thread: Thread) -> str:
    """What has a name of its own wherever it happens."""
    if on_stack(thread.frames, DEBUGGING):
        return "at a debugger prompt"
    if compiles(thread):
        return "compiling"
    if on_stack(thread.frames, SAVING):
        loads = any(f.function.rpartition(".")[2] in ("load", "_load", "load_file") for f in thread.frames)
        return "loading a checkpoint" if loads else "saving a checkpoint"
    if any(f.file.startswith("<frozen importlib") for f in thread.frames[:12]):
        return "importing modules"
    return ""


def _step_word(thread: Thread) -> str:
    """The innermost part of a training step on the stack."""
    if in_collective(thread):
        return "waiting for other ranks"
    return next((word for frame in thread.frames if (word := _part_of_step(frame))), "")


def _part_of_step(frame: Frame) -> str:
    if frame.file.endswith(FETCH):
        return "loading data in the main process"
    if frame.file.endswith(LOADER):
        function = frame.function.rpartition(".")[2]
        return {"_next_index": "drawing from the sampler", "__init__": "starting workers"}.get(
            function, "waiting for data"
        )
    if OPTIMIZER in frame.file:
        return "optimizer step"
    if is_backward(frame):
        return "backward pass"
    return FORWARD if frame.file.endswith(MODULE) else ""


def _other_word(thread: Thread) -> str:
    frames, user = thread.frames, thread.user_frame
    kind = thread.wait.kind if thread.wait else ""
    library = frames[: frames.index(user)] if user is not None else frames
    if any(_TOKENISES.search(f.function) or _TOKENISES.search(f.file.rpartition("site-packages/")[2]) for f in frames):
        return "tokenising"
    if on_stack(frames, _DOWNLOADS):
        return "downloading"
    if kind == "child" or on_stack(frames[:4], _WAITS_FOR_CHILD):
        return "waiting for a child process"
    if on_stack(frames, _POOL):
        return "waiting for a pool of its own workers"
    if library and (queued := awaited(thread)) in _QUEUED:
        return _QUEUED[queued]
    if any(_READS.search(f.file) for f in library):
        return "reading data"
    if any(_LOGS.search(f.file) for f in library):
        return "writing its log"
    if kind in ("running", "", "unknown"):
        return f"{OWN_CODE} ({os.path.basename(user.file)}, {user.function})" if user else "computing"
    return _kernel_word(thread) + (f" ({place(user)})" if user else "")


def _kernel_word(thread: Thread | None) -> str:
    wait = thread.wait if thread else None
    return _KERNEL_WORDS.get(wait.kind, "waiting") if wait else ""


def process_activity(process: Process) -> str:
    """What any process of the tree is doing, in a few words."""
    if process.role in ("main", "rank"):
        return activity(process.main_thread)
    return worker_activity(process) if process.role == "worker" else _helper_activity(process)


def worker_activity(process: Process) -> str:
    """What a DataLoader worker is doing."""
    thread = process.main_thread
    if thread is None or not thread.frames:
        return _kernel_word(thread) or "cannot be seen"
    work = loader_work(thread)
    if work.collating:
        return "collating a batch"
    if work.fetching:
        sample = work.sample_key if work.sample is None else work.sample
        return "making a batch" if sample == "" else f"making sample {sample}"
    if any(f.file.endswith(WORKER) for f in thread.frames):
        queued = any(f.function.endswith(("put", "_feed")) for f in thread.frames)
        return "handing over a batch" if queued else "idle, nothing to do"
    return "starting"


def _helper_activity(process: Process) -> str:
    thread, user = process.main_thread, process.user_frame
    word = _kernel_word(thread) or ("ended" if thread is None or thread.state == "Z" else "running")
    return f"{word} ({place(user)})" if user else word
