"""A worker that crashes on one sample, and hangs on another: the epoch goes on without these two.

The lock, the spawned workers and the main guard are those of the article this comes from; with torch's own DataLoader
the first crash ends the run: "DataLoader worker (pid …) is killed by signal: Segmentation fault".
"""

import multiprocessing
import os
import signal
import time

import torch
from torch.utils.data import Dataset

import unstuck


class MockDataset(Dataset):
    def __init__(self, size=40):
        self.size = size
        self.data_lock = multiprocessing.get_context("spawn").Lock()

    def __len__(self):
        return self.size

    def __getitem__(self, idx):
        if idx == 13:
            os.kill(os.getpid(), signal.SIGSEGV)  # a decoder that crashes on a corrupted file
        if idx == 27:
            time.sleep(3600)  # a file system that does not answer
        with self.data_lock:
            return torch.full((10,), float(idx))


if __name__ == "__main__":
    loader = unstuck.DataLoader(
        MockDataset(),
        batch_size=10,
        num_workers=2,
        multiprocessing_context="spawn",
        sample_timeout=2,
        on_bad_sample="skip",
        max_bad=2,
        quarantine="bad.jsonl",
    )
    for batch_idx, batch in enumerate(loader):
        print(f"Batch {batch_idx} processed: {len(batch)} samples")
    for bad in loader.bad_samples:
        print(f"Left out: sample {bad.sample}, {bad.what}")
