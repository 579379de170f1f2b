"""A loader whose dataset and files are shared."""

from __future__ import annotations

from unstuck.recorder.records.loaders import (
    LoaderSettings,
)

MAIN = 10
LOADER = LoaderSettings(
    pid=MAIN,
    loader=77,
    number=0,
    site=("/p/train.py", 30, "main"),
    dataset="Records",
    dataset_site=("/p/train.py", 9, "Records.__getitem__"),
    batch_size=None,
)
