import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 24), nn.ReLU())
        self.tags = nn.Linear(24, 4)
        self.spans = nn.Linear(24, 2)

    def forward(self, x):
        hidden = self.body(x)
        return self.tags(hidden), self.spans(hidden)


def train(rank, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    torch.manual_seed(0)
    x = torch.randn(640, 12)
    data = TensorDataset(x, (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long(), (x[:, 2] > 0).long())
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))
    model = DistributedDataParallel(Tagger())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for features, tags, spans in loader:
            tag_scores, span_scores = model(features)
            loss = nn.functional.cross_entropy(tag_scores, tags) + nn.functional.cross_entropy(span_scores, spans)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, args=(port,), nprocs=2)


if __name__ == "__main__":
    main()
