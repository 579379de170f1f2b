"""Messages about values and shapes: labels, indices, batches, lengths."""

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
    "Two tensors that meet in one operation have shapes that do not fit. "
    "The step at which it fails says more than the numbers.",
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
