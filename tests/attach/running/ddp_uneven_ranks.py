"""Two ranks over gloo; rank 1 has the longer sequences, so rank 0 waits for it in every step."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Reader(nn.Module):
    def __init__(self, vocab=500, dim=128):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, num_layers=2, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(int(os.environ.get("SEED", "0")) + rank)
    model = DDP(Reader())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    length = 64 if rank == 0 else 512
    start = time.time()
    for step in range(1_000_000):
        tokens = torch.randint(0, 500, (6, length))
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step == 0:
            print("READY", flush=True)
        if step % 5 == 0:
            print(f"[rank {rank}] step {step} loss {loss.item():.4f}", flush=True)
            over = torch.tensor(float(time.time() - start > 6 * 60))
            dist.all_reduce(over, op=dist.ReduceOp.MAX)
            if over:
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
