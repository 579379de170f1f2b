import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    """Short clips of 16 frames each."""

    def __len__(self):
        return 48

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        clip = torch.rand(16, 3, 32, 32, generator=g)
        return clip + 0.2 * (i % 2), i % 2


def main():
    torch.manual_seed(0)
    loader = DataLoader(Clips(), batch_size=16, num_workers=2, prefetch_factor=4)
    net = nn.Sequential(nn.Flatten(2), nn.Linear(3 * 32 * 32, 8), nn.ReLU())
    head = nn.Linear(8, 2)
    opt = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
    for epoch in range(2):
        for clips, labels in loader:
            loss = nn.functional.cross_entropy(head(net(clips).mean(1)), labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"epoch {epoch} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
