"""Messages found in texts as they really came, and nothing found where nothing is wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from unstuck.explain import MESSAGES
from unstuck.explain.search import find, nearest

TEXTS = sorted((Path(__file__).parent / "texts").glob("*.txt"))
"""Captured on a terminal: torch 2.13 on a CPU, 2.11 where a CUDA device was needed. NAME.txt or NAME--variant.txt."""

LINES = {
    "DataLoader worker (pid 77) is killed by signal: Bus error": "worker-bus-error",
    "DataLoader worker (pid(s) 123) exited unexpectedly": "worker-exited",
    "DataLoader worker (pid(s) 123, 124) exited unexpectedly": "worker-exited",
    "Too many open files": "open-files-limit",
    "too many open files": "open-files-limit",
    "RuntimeError: received 0 items of ancdata": "open-files-limit",
    "CUDA error: device-side assert triggered": "device-side-assert",
    "CUDA out of memory. Tried to allocate 20.00 MiB": "cuda-out-of-memory-error",
    "RuntimeError: CUDA error: out of memory": "cuda-out-of-memory-error",
    "unable to open shared memory object </torch_12_34> in read-write mode": "shared-memory-open",
    "No space left on device": "no-space-left",
    "[enforce fail at inline_container.cc:471] . PytorchStreamWriter failed writing file data/3: file write failed": (
        "checkpoint-not-written"
    ),
    "An attempt has been made to start a new process before the\n        current process has finished its "
    "bootstrapping phase.": "bootstrapping-phase",
    "context has already been set": "context-already-set",
    "AttributeError: Can't pickle local object 'main.<locals>.<lambda>'": "cannot-pickle",
    "AttributeError: Can’t pickle local object ‘main.<locals>.collate’": "cannot-pickle",
    "AttributeError: Can't get local object 'main.<locals>.collate'": "cannot-pickle",  # Python 3.13
    "TypeError: cannot pickle 'TextIOWrapper' instances": "cannot-pickle",  # Python 3.12
    "TypeError: cannot pickle '_thread.lock' object": "cannot-pickle",
    "AttributeError: Can't get attribute 'Shapes' on <module '__main__' (built-in)>": "cannot-pickle",
    "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 4])": (
        "one-value-per-channel"
    ),
    "IndexError: Target 7 is out of bounds.": "target-out-of-bounds",
    "IndexError: Target -1 is out of bounds.": "target-out-of-bounds",
    "RuntimeError: Class values must be smaller than num_classes.": "target-out-of-bounds",
    "IndexError: index out of range in self": "index-out-of-range",
    "RuntimeError: index 5 is out of bounds for dimension 1 with size 3": "index-out-of-range",
    "RuntimeError: all elements of input should be between 0 and 1": "between-zero-and-one",
    "RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.": "not-finite",
    "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0": "not-finite",
    "to satisfy the constraint Real(), but found invalid values:\ntensor([nan])": "not-finite",
    "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn": "nothing-requires-grad",
    "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.": "modified-in-place",
    "ValueError: num_samples should be a positive integer value, but got num_samples=0": "no-samples",
    "ValueError: optimizer got an empty parameter list": "no-samples",
    "ValueError: Tried to step 4 times. The specified number of total steps is 3": "scheduler-steps",
    "UserWarning: Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4, 1])).": (
        "target-size-differs"
    ),
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x12 and 10x4)": "shapes-do-not-fit",
    "Killed": "killed",
    "[1]+  Killed                  python train.py": "killed",
    "zsh: killed     python train.py": "killed",
    "[2]  + 4711 killed     python train.py": "killed",
    "bash: line 1: 21465 Killed                  python train.py": "killed",
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=14604003.0 cgroup.": "oom-kill",
    "Out of memory: Killed process 4711 (python) total-vm:91201232kB": "oom-kill",
    "Segmentation fault (core dumped)": "segmentation-fault",
    "run.sh: line 5: 26644 Segmentation fault      (core dumped) python train.py": "segmentation-fault",
    "bash: line 1: 21453 Floating point exceptionpython train.py": "segmentation-fault",
    "Aborted (core dumped)": "segmentation-fault",
    "terminate called after throwing an instance of 'std::bad_alloc'": "cannot-allocate-memory",
    "Bus error (core dumped)": "bus-error",
    "Terminated": "terminated",
    "Hangup": "terminated",
    "slurmstepd: error: *** JOB 812 ON n01 CANCELLED AT 2026-01-05T03:00:11 DUE TO TIME LIMIT ***": "terminated",
    "Caught RuntimeError in DataLoader worker process 0.": "worker-raised",
    "DataLoader timed out after 30 seconds": "loader-timed-out",
    "Trying to backward through the graph a second time (or directly access saved tensors …": "backward-twice",
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE": "collective-timeout",
    "Length of IterableDataset <Rows object at 0x7f> was reported to be 10(when accessing len": "iterable-length",
    "CUDA error: an illegal memory access was encountered": "illegal-memory-access",
    "Cannot re-initialize CUDA in forked subprocess": "cuda-in-forked-worker",
    "OSError: [Errno 12] Cannot allocate memory": "cannot-allocate-memory",
    "cannot allocate memory": "cannot-allocate-memory",
    "DeprecationWarning: This process (pid=8) is multi-threaded, use of fork() may lead to deadlocks in the child.": (
        "fork-with-threads"
    ),
    "\x1b[?2004l\x1b[31mKilled\x1b[0m\r\n": "killed",
    "Traceback (most recent call last):\n  File 'a.py', line 3\nKeyboardInterrupt": "keyboard-interrupt",
    "Traceback (most recent call last):\n  File 'a.py', line 3\nKeyError: 'loss'": "python-traceback",
}

HEALTHY = """\
Epoch 3/10:  42%|████▏     | 420/1000 [00:12<00:17, 33.1it/s, loss=0.344]
[2026-01-05 03:00:11,204][train][INFO] - epoch 3 step 420 loss 0.344 lr 1.0e-03 grad_norm 0.52
INFO: early stopping: training terminated after epoch 12, no improvement
killed 3 stale runs in the tracker; 0 workers killed
status: terminated
Saving checkpoint to checkpoints/epoch=3-step=4200.ckpt (512 MB), 812 GB left on device
W1115 12:05:06.570000 25965 torch/distributed/run.py:874] Setting OMP_NUM_THREADS environment variable for each process
/usr/lib/python3/site-packages/torch/utils/data/dataloader.py:685: UserWarning: 'pin_memory' argument is set as true but
no accelerator is found, then device pinned memory won't be used.
UserWarning: This DataLoader will create 8 worker processes in total. Our suggested max number of worker is 2
UserWarning: std(): degrees of freedom is <= 0.
FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated.
GPU memory: 12.1 GiB allocated, 14.0 GiB reserved; shared memory 1.2 GB used; 812 files open, limit 1024
rank 0: all ranks joined, 2/2; NCCL version 2.28.9; timeout 600 s
Validation: 100%|██████████| 50/50; accuracy 0.91; target 7 of 10 reached; no NaN seen
LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]
`Trainer.fit` stopped: `max_epochs=10` reached.
"""


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_a_text_as_it_came(path: Path) -> None:
    found = find(path.read_text())
    assert found[0].message.name == path.stem.partition("--")[0]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:40])
def test_a_line_alone_and_in_the_midst_of_a_log(line: str) -> None:
    assert find(line)[0].message.name == LINES[line]
    assert find(f"{HEALTHY}{line}\n{HEALTHY}")[0].message.name == LINES[line]


def test_every_message_is_tried() -> None:
    tried = {path.stem.partition("--")[0] for path in TEXTS} | set(LINES.values())
    assert {message.name for message in MESSAGES} - tried == {"pin-memory-thread"}  # its words stand in torch's source


@pytest.mark.parametrize("line", HEALTHY.splitlines(), ids=lambda line: line[:40])
def test_silent_on_healthy_output(line: str) -> None:
    assert not find(line)


def test_the_innermost_cause_comes_first() -> None:
    text = (
        "RuntimeError: Caught OSError in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        "OSError: [Errno 24] Too many open files: 'img_37.png'"
    )
    assert [one.message.name for one in find(text)] == ["open-files-limit", "worker-raised"]


def test_the_line_that_says_it_is_quoted() -> None:
    text = "epoch 0\nTraceback (most recent call last):\n  File 'a'\nIndexError: Target 7 is out of bounds.\nend"
    assert [one.line for one in find(text)] == ["IndexError: Target 7 is out of bounds."]
    assert (
        find("a\n[1]+  Killed                  python train.py\nb")[0].line
        == "[1]+  Killed                  python train.py"
    )
    assert find("İstanbul\nKilled\n")[0].line == "killed"  # its lower case is longer: places would not fit


def test_unknown_words_bring_the_nearest_and_strange_ones_none() -> None:
    assert not find("RuntimeError: shared memory object is broken")
    assert nearest("RuntimeError: shared memory object is broken")[0].name == "shared-memory-open"
    assert not nearest("colourless green ideas sleep furiously")


LOG = "epoch 3 step {0} loss 0.{0} | dataloader worker ok, caught up\n"
LONG = {
    "a log": "".join(LOG.format(step) for step in range(90_000)),
    "one line": "a" * 5_000_000,
    "blanks": "too " + " " * 5_000_000,
    "breaks": "\n[1" * 1_700_000,
    "pids": "DataLoader worker (pid(s) " + "1, " * 1_700_000,
    "beginnings": "Caught unable to open shared memory object " * 116_000,
    "colours": "\x1b[" * 2_500_000,
}


@pytest.mark.parametrize("name", LONG)
def test_five_megabytes_take_no_time(name: str) -> None:
    begun = time.process_time()
    find(LONG[name])
    taken = time.process_time() - begun
    # 0.06 s for the log and up to 1.4 s for texts made to be hard, alone; a pattern that tries all ways takes hours.
    assert taken < (1 if name == "a log" else 10)
