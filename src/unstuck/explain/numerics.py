"""Messages about gradients, graphs and numbers that are not finite."""

from __future__ import annotations

from unstuck.explain.message import Message, says

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
    "backward was called on a loss that no parameter has part in. "
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
    "A check met NaN or infinity; they were born earlier. "
    "Outputs of a model that has become NaN fail wherever something looks at them first.",
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
    "binary_cross_entropy wants probabilities, and got something else. NaN gives the same message as 1.5.",
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
    "The learning rate schedule is stepped at another pace than it was made for. "
    "It counts its own steps and knows nothing of batches or epochs.",
    (
        ("scheduler-kills-learning-rate", "it is stepped once a batch, and its total was given in epochs"),
        (
            "stop-condition-never-met",
            "it is stepped as meant, but the loop runs longer: a resumed run, a bound passed by",
        ),
        ("optimizer-never-steps", "it warns about the order, and no optimizer.step runs at all"),
    ),
    ("unstuck run train.py",),
)
