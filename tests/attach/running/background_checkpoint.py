"""Trains while a background thread packs and writes the checkpoints."""

import copy
import gzip
import queue
import tempfile
import threading

import torch
from torch import nn


class CheckpointWriter(threading.Thread):
    def __init__(self):
        super().__init__(name="checkpoint-writer", daemon=True)
        self.jobs = queue.Queue(maxsize=1)

    def run(self):
        while True:
            step, state = self.jobs.get()
            with tempfile.TemporaryFile() as f:
                with gzip.GzipFile(fileobj=f, mode="wb", compresslevel=3) as packed:
                    torch.save(state, packed)
                print(f"checkpoint of step {step}: {f.tell() / 1e6:.1f} MB", flush=True)

    def submit(self, step, state):
        try:
            self.jobs.put_nowait((step, copy.deepcopy(state)))
        except queue.Full:
            print(f"step {step}: still writing, skipped", flush=True)


class Seq2Seq(nn.Module):
    def __init__(self, vocab=3000, dim=256):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.encoder = nn.GRU(dim, dim, num_layers=2, batch_first=True)
        self.decoder = nn.GRU(dim, dim, num_layers=2, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, source, target):
        _, hidden = self.encoder(self.embed(source))
        return self.out(self.decoder(self.embed(target), hidden)[0])


def main():
    torch.set_num_threads(1)
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    writer = CheckpointWriter()
    writer.start()
    for step in range(1_000_000):
        source = torch.randint(0, 3000, (16, 32))
        target = source.flip(1)
        logits = model(source, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
            writer.submit(step, {"model": model.state_dict(), "step": step})
        if step == 1:
            print("READY", flush=True)


if __name__ == "__main__":
    main()
