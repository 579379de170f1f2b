import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = 4


class Stripes(Dataset):
    def __init__(self, n=400, size=20):
        g = torch.Generator().manual_seed(0)
        self.items = []
        level = torch.tensor([0.0, 0.7, 1.4, 2.1])
        for _ in range(n):
            cuts = torch.sort(torch.randint(2, size - 2, (3,), generator=g)).values
            col = (torch.arange(size)[:, None] >= cuts[None]).sum(1)
            order = torch.randperm(CLASSES, generator=g)
            mask = order[col][None].expand(size, size).contiguous()
            img = level[mask] + 0.3 * torch.randn(size, size, generator=g)
            self.items.append((img[None] - 1.0, mask))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class FCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        )
        self.classify = nn.Conv2d(16, CLASSES, 1)

    def forward(self, x):
        logits = self.classify(self.body(x))
        return logits


def main():
    torch.manual_seed(0)
    loader = DataLoader(Stripes(), batch_size=8, shuffle=True)
    model = FCN()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(8):
        total, good, pixels = 0.0, 0, 0
        for img, mask in loader:
            out = model(img)
            loss = loss_fn(out, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
            good += (out.argmax(1) == mask).sum().item()
            pixels += mask.numel()
        print(f"epoch {epoch} loss {total / len(loader):.4f} pixel acc {good / pixels:.3f}", flush=True)


if __name__ == "__main__":
    main()
