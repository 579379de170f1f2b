"""A CNN fed raw 0-255 pixels on purpose: the first layer is a BatchNorm that does the scaling."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def make_images(n):
    """Noisy 16x16 RGB images with a horizontal, vertical or diagonal bar."""
    y = torch.randint(0, 3, (n,))
    img = torch.randint(0, 140, (n, 3, 16, 16)).float()
    pos = torch.randint(3, 13, (n,))
    idx = torch.arange(16)
    for i in range(n):
        if y[i] == 0:
            img[i, :, pos[i], :] += 90
        elif y[i] == 1:
            img[i, :, :, pos[i]] += 90
        else:
            img[i, :, idx, (idx + pos[i]) % 16] += 90
    return img.clamp(0, 255).to(torch.uint8), y


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32, 3)

    def forward(self, x):
        x = self.norm(x.float())
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.mean(dim=(2, 3)))


images, labels = make_images(2000)
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(10):
    perm = torch.randperm(len(images))
    losses, hits = [], 0
    for i in range(0, len(images), 50):
        batch = perm[i : i + 50]
        out = model(images[batch])
        loss = F.cross_entropy(out, labels[batch])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        hits += (out.argmax(1) == labels[batch]).sum().item()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} acc {hits / len(images):.3f}")
