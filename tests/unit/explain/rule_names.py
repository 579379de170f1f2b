"""The names of all rules there are or will be: a message may name a rule before it is written."""

from __future__ import annotations

_NAMES = """
activation-applied-twice all-labels-ignored batch-aliases-dataset batches-not-shuffled batchnorm-batch-of-one
capacity-too-small category-as-number clip-before-unscale clip-too-tight collectives-differ constant-feature
cuda-out-of-memory dataset-copied-to-workers dead-units disk-full duplicate-samples-across-workers empty-loader
ended-from-outside endless-epoch eval-mode-while-training exploding-gradient file-handle-shared-across-workers
file-lock-held frozen-parameters gradients-never-cleared graph-cut graph-grows-every-step label-out-of-range
labels-imbalanced labels-unrelated-to-inputs learning-rate-too-high learning-rate-too-low loader-exhausted
loader-rebuilt-every-step lock-lost-in-fork lock-never-released loss-broadcasts loss-oscillates
loss-scale-collapsed loss-spike main-spins memory-leak-in-loop missing-values native-crash
no-better-than-constant nonfinite-born nonfinite-input optimizer-never-steps out-of-memory-kill outlier-samples
output-range-excludes-targets parameters-not-in-optimizer pipe-full predicts-one-class progress-unknown
queue-not-drained rank-exited-early rank-skips-collective same-batch-every-step sample-raises sample-retries
sample-spins saturated-units scheduler-kills-learning-rate shared-memory-full slow-host-to-device
softmax-over-wrong-dim spawn-without-main-guard stale-dataset-in-workers stale-lock-file starved-for-data
step-time-grows still-improving stop-condition-never-met straggler-rank symmetric-weights target-scale
thread-oversubscription too-few-workers too-many-open-files too-many-workers uncaught-exception uneven-batches
unpicklable-dataset unscaled-input unused-parameters vanishing-gradient waits-for-nobody waits-on-device
waits-on-input waits-on-io waits-on-rank weight-decay-dominates workers-restart-every-epoch workers-take-turns
world-never-formed wrong-loss-for-target
"""

NAMES = frozenset(_NAMES.split())
