import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class NoisyPairs(Dataset):
    def __init__(self, n=1500):
        g = torch.Generator().manual_seed(6)
        self.clean = torch.cumsum(torch.randn(n, 40, generator=g), 1) / 6
        self.sigma = torch.tensor(0.05)

    def set_sigma(self, sigma):
        self.sigma = torch.tensor(sigma)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return self.clean[i] + self.sigma * torch.randn(40, generator=g), self.clean[i]


class Curriculum:
    def __init__(self, dataset, levels):
        self.dataset = dataset
        self.levels = levels

    def start_epoch(self, epoch):
        sigma = self.levels[min(epoch // 2, len(self.levels) - 1)]
        self.dataset.set_sigma(sigma)
        return sigma


def main():
    torch.manual_seed(0)
    dataset = NoisyPairs()
    curriculum = Curriculum(dataset, [0.1, 0.3, 0.6, 1.0])
    loader = DataLoader(dataset, batch_size=25, shuffle=True, num_workers=2, persistent_workers=True, prefetch_factor=4)
    model = nn.Sequential(nn.Linear(40, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 40))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(10):
        sigma = curriculum.start_epoch(epoch)
        total = 0.0
        for noisy, clean in loader:
            loss = nn.functional.mse_loss(model(noisy), clean)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} sigma {sigma} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
