"""Semi-supervised training: a labelled loader in process, an unlabelled one with two workers."""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Unlabelled(Dataset):
    """Two noisy views of one image, blurred in different ways."""

    def __len__(self):
        return 50_000

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        image = torch.rand(3, 32, 32, generator=g)
        views = []
        for size in (3, 5):
            blurred = image
            for _ in range(6):
                blurred = nn.functional.avg_pool2d(blurred, size, stride=1, padding=size // 2)
            views.append(blurred + 0.05 * torch.randn(3, 32, 32, generator=g))
        return views


def cycle(loader):
    while True:
        yield from loader


def main():
    torch.set_num_threads(1)
    labelled = DataLoader(
        TensorDataset(torch.rand(500, 3, 32, 32), torch.randint(0, 10, (500,))), batch_size=16, shuffle=True
    )
    unlabelled = DataLoader(Unlabelled(), batch_size=48, shuffle=True, num_workers=2)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 36, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, nesterov=True, momentum=0.9)
    batches = zip(cycle(labelled), cycle(unlabelled), strict=False)
    for step, ((x, y), (weak, strong)) in zip(itertools.count(), batches, strict=False):
        with torch.no_grad():
            pseudo = model(weak).softmax(-1)
        loss = nn.functional.cross_entropy(model(x), y)
        loss = loss + nn.functional.cross_entropy(model(strong), pseudo)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 3:
            print("READY", flush=True)
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
