"""Messages of an accelerator."""

from __future__ import annotations

from unstuck.explain.message import Message, says

DEVICE_ASSERT = Message(
    "device-side-assert",
    "CUDA error: device-side assert triggered",
    says(r"device-side assert triggered"),
    "A kernel checked a value and stopped the device; from then on every CUDA call of the process fails. "
    "“Assertion `…` failed”, printed before the traceback, names the check; the traceback may be that of a later call.",
    (
        ("label-out-of-range", "the assertion is `t >= 0 && t < n_classes`"),
        ("nonfinite-born", "it is about `inf`, `nan` or `input_val >= zero`: the model's output is not a number"),
        ("uncaught-exception", "it says index out of bounds or srcIndex: an id beyond an embedding or a table"),
    ),
    (
        "CUDA_LAUNCH_BLOCKING=1 unstuck run train.py",
        "CUDA_VISIBLE_DEVICES= python train.py   # on the CPU it names the value",
    ),
)

ILLEGAL_ACCESS = Message(
    "illegal-memory-access",
    "CUDA error: an illegal memory access was encountered",
    says(
        r"an illegal memory access was encountered",
        r"cuda error: misaligned address",
        r"cuda error: unspecified launch failure",
    ),
    "A kernel wrote or read outside its memory; from then on every CUDA call of the process fails. "
    "Torch's own operations check their indices, so suspect kernels of extensions first: Triton, fused or custom ones.",
    (
        ("uncaught-exception", "CUDA_LAUNCH_BLOCKING=1 fails at the same line each time: that kernel"),
        ("native-crash", "lines differ from run to run, and `dmesg` has an Xid: the device or its driver"),
    ),
    (
        "CUDA_LAUNCH_BLOCKING=1 unstuck run train.py",
        "compute-sanitizer python train.py",
        "dmesg -T | grep -i xid",
    ),
)

SAME_DEVICE = Message(
    "same-device",
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu",
    says(r"expected all tensors to be on the same device", r"can't convert cuda:\d+ device type tensor to numpy"),
    "Two tensors of one operation lie on different devices. "
    "What was made inside forward, or kept in a plain list, does not move with model.to(device).",
    (
        ("uncaught-exception", "the first step fails: the batch, the labels or a tensor made in forward was not moved"),
        (
            "parameters-not-in-optimizer",
            "it is a layer in a plain list: it moves with nothing and is not trained either",
        ),
    ),
    ("unstuck run train.py",),
)

NO_DEVICE = Message(
    "no-such-device",
    "No CUDA GPUs are available · Torch not compiled with CUDA enabled · invalid device ordinal",
    says(
        r"no cuda gpus are available",
        r"torch not compiled with cuda enabled",
        r"invalid device ordinal",
        r"attempting to deserialize object on a cuda device",
        r"found no nvidia driver on your system",
    ),
    "The script asks for a device that this process cannot see. "
    "The torch build, the driver, CUDA_VISIBLE_DEVICES or the container decides what it sees.",
    (("uncaught-exception", "it fails before the first step, at the line that names the device"),),
    (
        "nvidia-smi",
        "echo $CUDA_VISIBLE_DEVICES",
        'python -c "import torch; print(torch.__version__, torch.cuda.device_count())"',
    ),
)
