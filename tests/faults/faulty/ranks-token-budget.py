"""Two ranks train a text classifier; batches are filled up to a budget of tokens, and gradients averaged by hand."""

import os
import random
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

WORLD, BUDGET, EPOCHS, VOCABULARY = 2, 320, 4, 60


def reviews(count):
    draw = random.Random(8)
    for _ in range(count):
        positive = draw.random() < 0.5
        words = [
            draw.randrange(30) + (30 if positive and draw.random() < 0.4 else 0) for _ in range(draw.randint(4, 40))
        ]
        yield words, int(positive)


def by_budget(rows):
    batch, longest = [], 0
    for words, label in rows:
        longest = max(longest, len(words))
        if batch and longest * (len(batch) + 1) > BUDGET:
            yield padded(batch)
            batch, longest = [], len(words)
        batch.append((words, label))
    if batch:
        yield padded(batch)


def padded(batch):
    width = max(len(words) for words, _ in batch)
    ids = torch.tensor([[w + 1 for w in words] + [0] * (width - len(words)) for words, _ in batch])
    return ids, torch.tensor([label for _, label in batch])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCABULARY + 1, 16, padding_idx=0)
        self.out = nn.Linear(16, 2)

    def forward(self, ids):
        return self.out(self.words(ids))


def average_gradients(model):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    begin = 0
    for p in model.parameters():
        p.grad.copy_(flat[begin : begin + p.numel()].view_as(p) / WORLD)
        begin += p.numel()


def train_epoch(model, optimizer, rows):
    right = torch.zeros(2)
    for ids, labels in by_budget(rows):
        logits = model(ids)
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits, labels).backward()
        average_gradients(model)
        optimizer.step()
        right += torch.tensor([(logits.argmax(1) == labels).sum().item(), len(labels)])
    return right


def everywhere(metrics, values):
    total = values.clone()
    dist.all_reduce(total, group=metrics)
    return total


def train(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=WORLD)
    metrics = dist.new_group()
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    mine = list(reviews(600))[rank::WORLD]
    for epoch in range(EPOCHS):
        right = everywhere(metrics, train_epoch(model, optimizer, mine))
        if rank == 0:
            print(f"epoch {epoch + 1}: {right[0] / right[1]:.3f} right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(os.path.abspath(folder),), nprocs=WORLD)
