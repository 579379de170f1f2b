import os
import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ["bird", "cat", "dog", "frog"]


def unpack(root, per_class=40):
    rng = np.random.default_rng(9)
    for label, name in enumerate(CLASSES):
        os.makedirs(os.path.join(root, name))
        for i in range(per_class):
            image = rng.normal(loc=0.2 * label, size=(3, 8, 8)).astype("float32")
            path = os.path.join(root, name, f"{i:03d}.npy")
            np.save(path, image)
            if name == "frog":
                os.truncate(path, 100)


class ImageTree(Dataset):
    def __init__(self, root):
        self.files = {c: sorted(e.path for e in os.scandir(os.path.join(root, c))) for c in CLASSES}
        self.items = [(c, p) for c in CLASSES for p in self.files[c]]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        name, path = self.items[i]
        while True:
            try:
                return torch.from_numpy(np.load(path)), CLASSES.index(name)
            except (ValueError, EOFError):
                path = random.choice(self.files[name])


def main():
    torch.manual_seed(0)
    random.seed(0)
    root = tempfile.mkdtemp(prefix="images_")
    unpack(root)
    loader = DataLoader(ImageTree(root), batch_size=8)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(3):
        model.train()
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"epoch {epoch} batch {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
