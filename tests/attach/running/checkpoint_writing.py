"""Item embeddings with sparse updates: a step is cheap, the checkpoint after it is not."""

import os
import tempfile
import time

import torch
from torch import nn


class ItemModel(nn.Module):
    def __init__(self, items=120_000, dim=64):
        super().__init__()
        self.items = nn.Embedding(items, dim, sparse=True)
        self.users = nn.Embedding(items // 10, dim, sparse=True)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1)


def save_checkpoint(f, model, optimizer, step):
    f.seek(0)
    f.truncate()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, f)
    f.flush()
    os.fsync(f.fileno())


def main():
    torch.set_num_threads(1)
    model = ItemModel()
    optimizer = torch.optim.SparseAdam(model.parameters(), lr=1e-2)
    with tempfile.TemporaryFile() as checkpoint:  # scratch space, gone with the process
        for step in range(1_000_000):
            user = torch.randint(0, 12_000, (64,))
            item = torch.randint(0, 120_000, (64,))
            clicked = torch.randint(0, 2, (64,)).float()
            loss = nn.functional.binary_cross_entropy_with_logits(model(user, item), clicked)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                t0 = time.time()
                save_checkpoint(checkpoint, model, optimizer, step)
                if step == 0:
                    print("READY", flush=True)
                if step % 25 == 0:
                    print(f"step {step} loss {loss.item():.4f} saved in {time.time() - t0:.2f}s", flush=True)


if __name__ == "__main__":
    main()
