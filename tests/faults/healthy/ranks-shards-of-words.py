import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Words(IterableDataset):
    """The words of this rank's part of a text, each as the counts of its letters."""

    def __init__(self, text, rank, world):
        words = text.split()
        self.words = words[rank : len(words) // world * world : world]

    def __iter__(self):
        for word in self.words:
            letters = torch.zeros(26)
            for letter in word:
                letters[ord(letter) - 97] += 1
            yield letters, torch.tensor([float(len(word))])


def text():
    g = torch.Generator().manual_seed(3)
    short = [2 + int(torch.randint(0, 3, (1,), generator=g)) for _ in range(400)]
    long = [6 + int(torch.randint(0, 5, (1,), generator=g)) for _ in range(150)]
    return " ".join("".join(chr(97 + (k * 7 + n) % 26) for n in range(size)) for k, size in enumerate(short + long))


def train(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    torch.manual_seed(0)
    loader = DataLoader(Words(text(), rank, 2), batch_size=10)
    model = DistributedDataParallel(nn.Linear(26, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for letters, size in loader:
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(letters), size)
            loss.backward()
            opt.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch} loss {mean.item() / 2:.4f}", flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(port,), nprocs=2)


if __name__ == "__main__":
    main()
