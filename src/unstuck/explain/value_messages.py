"""Messages about values: shapes, labels, NaN, and the device that tripped over them."""

from __future__ import annotations

from unstuck.explain.message import Message, says

TARGET = Message(
    "target-out-of-bounds",
    "IndexError: Target … is out of bounds · Assertion `t >= 0 && t < n_classes` failed",
    says(
        r"target -?\d{1,20} is out of bounds",
        r"assertion `t >= 0 && t < n_classes` failed",
        r"class values must be (?:smaller than num_classes|non-negative)",
    ),
    "The loss got a class number that is negative or not below the number of outputs. "
    "On a GPU it comes as a device-side assert, and the traceback may point at a later line.",
    (
        (
            "label-out-of-range",
            "the largest label is ≥ the model's outputs, or a −1 marks “no label” without ignore_index",
        ),
    ),
    ("unstuck run train.py", "CUDA_LAUNCH_BLOCKING=1 python train.py"),
)

INDEX = Message(
    "index-out-of-range",
    "IndexError: index out of range in self · Assertion `srcIndex < srcSelectDimSize` failed",
    says(
        r"index out of range in self",
        r"assertion `srcindex < srcselectdimsize` failed",
        r"index -?\d{1,20} is out of bounds for dimension",
        r"index out of bounds\"` failed",
    ),
    "An index points beyond its table: an embedding, a gather, a scatter or a tensor indexed by another. "
    "“in self” is an embedding, and its ids must be below num_embeddings.",
    (
        ("label-out-of-range", "it is gather, scatter or one_hot, and the index is the label"),
        ("uncaught-exception", "it is an embedding: a token or category id the vocabulary does not have"),
        ("sample-raises", "“in DataLoader worker process” stands above: the dataset's own indexing"),
    ),
    ("unstuck run train.py", "CUDA_LAUNCH_BLOCKING=1 python train.py"),
)

ONE_VALUE = Message(
    "one-value-per-channel",
    "ValueError: Expected more than 1 value per channel when training",
    says(
        r"expected more than 1 value per channel when training", r"expected more than 1 spatial element when training"
    ),
    "BatchNorm needs two values a channel to have a variance, and got one. "
    "The shape in the message begins with the batch size, usually 1.",
    (
        ("batchnorm-batch-of-one", "it fails at the end of an epoch: the last batch has one sample; drop_last=True"),
        ("uncaught-exception", "it fails at the first step: batch_size is 1, or pooling leaves 1×1 of a single image"),
    ),
    ("unstuck run train.py",),
)

STACK = Message(
    "samples-of-unequal-size",
    "RuntimeError: stack expects each tensor to be equal size · batch must contain tensors …; found <class 'NoneType'>",
    says(
        r"stack expects each tensor to be equal size",
        r"each element in list of batch should be of equal size",
        r"default_collate: batch must contain",
        r"trying to resize storage that is not resizable",
        r"'nonetype' object has no attribute 'numel'",
    ),
    "Each sample was made, but they cannot be put into one batch: shapes differ, or one is None. "
    "“at entry N” counts within the batch; it is not the index in the dataset.",
    (
        ("sample-raises", "most batches pass and one fails: one sample is odd, and has an index"),
        ("uncaught-exception", "the first batch fails: samples differ by nature and need a collate_fn that pads"),
    ),
    ("unstuck run train.py",),
)

SHAPES = Message(
    "shapes-do-not-fit",
    "mat1 and mat2 shapes cannot be multiplied · The size of tensor a must match the size of tensor b",
    says(
        r"mat1 and mat2 shapes cannot be multiplied",
        r"the size of tensor a \(\d+\) must match the size of tensor b",
        r"sizes of tensors must match except in dimension",
        r"expected input batch_size \(\d+\) to match target batch_size",
        r"shape '[^'\n]{1,100}' is invalid for input of size",
        r"given groups=\d+, weight of size",
    ),
    "Two tensors in one operation have shapes that do not fit. The step at which it fails tells more than the numbers.",
    (
        (
            "uncaught-exception",
            "the first step fails: two layers do not fit; the last step of an epoch: a smaller batch",
        ),
        ("sample-raises", "“in DataLoader worker process” stands above: one sample"),
    ),
    ("unstuck run train.py",),
)

TARGET_SIZE = Message(
    "target-size-differs",
    "Using a target size (…) that is different to the input size (…)",
    says(
        r"using a target size \(torch\.size\([^\n]{1,80} that is different to the input size",
        r"target size \(torch\.size\([^\n]{1,80} must be the same as input size",
    ),
    "Prediction and target differ in shape, [4, 1] against [4] for instance. mse_loss only warns and compares each "
    "prediction with every target, and the model learns the mean; binary cross-entropy refuses.",
    (("loss-broadcasts", "the two shapes differ by a dimension of 1: squeeze the prediction or unsqueeze the target"),),
    ("unstuck run train.py", "python -W error train.py"),
)

REPORTED_LENGTH = Message(
    "iterable-length",
    "Length of IterableDataset … was reported to be … but … samples have been fetched",
    says(r"length of iterabledataset"),
    "The dataset yields more than its `__len__` promised. "
    "With workers, each runs the whole `__iter__` unless it asks get_worker_info for its part.",
    (
        (
            "duplicate-samples-across-workers",
            "there are num_workers times as many, and num_workers=0 gives the right count",
        ),
        ("endless-epoch", "the count goes on beyond any multiple: the epoch does not end"),
    ),
    ("unstuck run train.py",),
)

NO_SAMPLES = Message(
    "no-samples",
    "num_samples should be a positive integer value, but got num_samples=0",
    says(r"num_samples should be a positive integer value", r"optimizer got an empty parameter list"),
    "Something that must not be empty is: the dataset has no sample, or the optimizer no parameter. "
    "Nothing was trained yet.",
    (
        ("empty-loader", "it says num_samples=0: the path, pattern or split matched nothing"),
        (
            "parameters-not-in-optimizer",
            "it speaks of the parameter list: layers in a plain list, or a spent generator",
        ),
    ),
    ("ls DATA | head", "unstuck run train.py"),
)

BACKWARD_TWICE = Message(
    "backward-twice",
    "RuntimeError: Trying to backward through the graph a second time",
    says(r"trying to backward through the graph a second time"),
    "backward reached a part of the graph that an earlier backward had already used up. "
    "A tensor made in an earlier step is still in this step's loss; retain_graph=True hides that and grows each step.",
    (
        ("graph-grows-every-step", "it fails at the second step: a hidden state or a running loss was never detached"),
        ("uncaught-exception", "it fails at the first: two losses share a graph; add them and call backward once"),
    ),
    ("unstuck run train.py",),
)

NO_GRAD = Message(
    "nothing-requires-grad",
    "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    says(r"does not require grad and does not have a grad_fn"),
    "backward was called on a loss that depends on no trainable parameter. "
    "Somewhere between the parameters and the loss the graph was cut, or nothing is trainable.",
    (
        ("graph-cut", "parameters require grad: a detach, item, numpy, argmax, no_grad or a new tensor cuts between"),
        ("frozen-parameters", "no parameter requires grad"),
    ),
    (
        'python -c "import train; print([n for n, p in train.model.named_parameters() if p.requires_grad])"',
        "unstuck run train.py",
    ),
)

IN_PLACE = Message(
    "modified-in-place",
    "one of the variables needed for gradient computation has been modified by an inplace operation",
    says(r"modified by an inplace operation", r"leaf variable that requires grad is being used in an in-place"),
    "A tensor that backward still needs was overwritten after the forward pass. "
    "The message has its shape and the operation it came from; anomaly detection adds the line.",
    (
        (
            "graph-grows-every-step",
            "it fails at the second step: the optimizer changed weights an old graph still uses",
        ),
        ("uncaught-exception", "it fails at the first: a +=, an index assignment or inplace=True in the forward pass"),
    ),
    ("unstuck run train.py",),
)

NOT_FINITE = Message(
    "not-finite",
    "Function '…Backward0' returned nan values · probability tensor contains either `inf`, `nan` or element < 0",
    says(
        r"returned nan values in its",
        r"probability tensor contains either",
        r"but found invalid values: tensor\(\[{1,4}\s{0,4}nan",
        r"is non-finite, so it cannot be clipped",
        r"the input matrix contained non-finite values",
        r"input contains nan",
    ),
    "A check found NaN or infinity, which came from an earlier operation. "
    "The outputs of a model that has become NaN fail at the first check they meet.",
    (
        ("nonfinite-input", "the batch itself has a NaN or an infinity"),
        ("exploding-gradient", "the gradient norm and the loss rose for some steps before"),
        (
            "nonfinite-born",
            "the batch and the weights are finite: one operation made it (log 0, 0/0, √0, a masked row)",
        ),
        ("learning-rate-too-high", "it happens within the first steps, and not with a tenth of the rate"),
    ),
    ("unstuck run train.py",),
)

ZERO_TO_ONE = Message(
    "between-zero-and-one",
    "all elements of input should be between 0 and 1",
    says(
        r"all elements of (?:input|target) should be between 0 and 1",
        r"assertion `input_val >= zero && input_val <= one` failed",
        r"assertion `target_val >= zero && target_val <= one` failed",
    ),
    "binary_cross_entropy expects probabilities but got something else. NaN gives the same message as 1.5.",
    (
        ("nonfinite-born", "it passes for some steps and then fails: the output has become NaN"),
        ("uncaught-exception", "the first step fails, for the input: no sigmoid; use the loss with_logits"),
        ("wrong-loss-for-target", "it says target: the labels are not 0 and 1 (class numbers, −1 and 1, 0 to 255)"),
    ),
    ("unstuck run train.py",),
)

SCHEDULER = Message(
    "scheduler-steps",
    "Tried to step … times. The specified number of total steps is … · lr_scheduler.step() before optimizer.step()",
    says(r"tried to step \d+ times", r"detected call of `lr_scheduler\.step\(\)` before `optimizer\.step\(\)`"),
    "The learning rate schedule is stepped more often than it was made for, or at the wrong moment. "
    "It counts its own steps and knows nothing of batches or epochs.",
    (
        ("scheduler-kills-learning-rate", "it is stepped once a batch, and its total is in epochs"),
        (
            "stop-condition-never-met",
            "it is stepped as meant, but the loop runs longer: a resumed run, or a bound that was stepped over",
        ),
        ("optimizer-never-steps", "it warns about the order, and no optimizer.step runs at all"),
    ),
    ("unstuck run train.py",),
)

DEVICE_ASSERT = Message(
    "device-side-assert",
    "CUDA error: device-side assert triggered",
    says(r"device-side assert triggered"),
    "A kernel checked a value and stopped the device; from then on every CUDA call of the process fails. "
    "“Assertion `…` failed”, printed before the traceback, names the check; the traceback may be that of a later call.",
    (
        ("label-out-of-range", "the assertion is `t >= 0 && t < n_classes`"),
        ("nonfinite-born", "it is about `inf`, `nan` or `input_val >= zero`: the model's output is NaN or Inf"),
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
