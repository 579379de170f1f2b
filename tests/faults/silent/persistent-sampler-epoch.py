import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Clips(Dataset):
    def __init__(self, n=900):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        clip = torch.randn(16, 20, generator=g)
        clip[:, (i % 5) * 4:(i % 5) * 4 + 4] += 0.5
        return clip, i % 5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(20, 64, batch_first=True)
        self.fc = nn.Linear(64, 5)

    def forward(self, x):
        return self.fc(self.rnn(x)[0].mean(1))


def main():
    torch.manual_seed(0)
    data = Clips()
    sampler = DistributedSampler(data, num_replicas=1, rank=0, shuffle=True, seed=0)
    loader = DataLoader(data, batch_size=15, sampler=sampler, num_workers=2, persistent_workers=True)
    model = Net()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(16):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
