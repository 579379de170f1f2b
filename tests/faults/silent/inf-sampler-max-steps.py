import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class InfiniteSampler(Sampler):
    def __init__(self, size, seed=0):
        self.size, self.seed = size, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        while True:
            yield from torch.randperm(self.size, generator=g).tolist()


def images(n):
    g = torch.Generator().manual_seed(0)
    y = torch.randint(0, 3, (n,), generator=g)
    x = torch.randn(n, 1, 24, 24, generator=g)
    for k in range(3):
        x[y == k, :, :, k * 8:k * 8 + 8] += 0.4
    return TensorDataset(x, y)


def main(max_steps=950):
    torch.manual_seed(0)
    data = images(1000)
    loader = DataLoader(data, batch_size=16, sampler=InfiniteSampler(len(data)))
    model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
                          nn.Flatten(), nn.Linear(288, 3))
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    for step, (x, y) in enumerate(loader):
        if step >= max_steps:
            break
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(f"step {step}/{max_steps} loss {loss.item():.4f}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
