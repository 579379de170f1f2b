import torch
from torch import nn


class Clips:
    """Fixed-length clips of recordings; an index past the end gives the last clip."""

    def __init__(self, recordings, length):
        self.recordings = recordings
        self.length = length
        self.starts = [(i, s) for i, r in enumerate(recordings) for s in range(0, len(r) - length, length)]

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        which, start = self.starts[min(index, len(self.starts) - 1)]
        clip = self.recordings[which][start:start + self.length]
        return clip, torch.tensor(which % 3)


class Classifier(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(length, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
        self.head = nn.Linear(128, 3)

    def forward(self, x):
        return self.head(self.body(x))


def recordings():
    g = torch.Generator().manual_seed(4)
    return [torch.sin(torch.arange(2000) / (4.0 + i % 3)) + 0.3 * torch.randn(2000, generator=g) for i in range(9)]


def train_epoch(model, clips, optimizer):
    total = 0.0
    seen = 0
    for i, (clip, label) in enumerate(clips):
        logits = model(clip.unsqueeze(0))
        loss = nn.functional.cross_entropy(logits, label.unsqueeze(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        seen += 1
        if i % 500 == 0:
            print(f"  clip {i} loss {total / seen:.4f}", flush=True)
    return total / seen


def main():
    torch.manual_seed(0)
    clips = Clips(recordings(), length=100)
    model = Classifier(100)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(4):
        print(f"epoch {epoch} loss {train_epoch(model, clips, optimizer):.4f}", flush=True)


if __name__ == "__main__":
    main()
