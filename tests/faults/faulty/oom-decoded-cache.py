import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    """Decoding is slow, so each clip is kept once it was decoded."""

    def __init__(self, clips=4000):
        self.clips = clips
        self.decoded = {}

    def __len__(self):
        return self.clips

    def decode(self, index):
        generator = torch.Generator().manual_seed(index)
        return nn.functional.avg_pool2d(torch.rand(3, 8, 112, 112, generator=generator), 7, stride=1, padding=3)

    def __getitem__(self, index):
        self.decoded[index] = self.decode(index)
        return self.decoded[index].mean(dim=(2, 3)).flatten(), index % 5


def main():
    torch.manual_seed(0)
    loader = DataLoader(Clips(), batch_size=8, num_workers=1)
    model = nn.Linear(24, 5)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, (features, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(features), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step == 80:
            break


if __name__ == "__main__":
    main()
