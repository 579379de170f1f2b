import multiprocessing

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Corpus(Dataset):
    """All sentences as numbers in one tensor, which the workers share."""

    def __init__(self):
        self.lengths = torch.arange(150_000 * 21).reshape(150_000, 21) % 6 + 1

    def __len__(self):
        return 64

    def __getitem__(self, index):
        x = self.lengths[index * 100].float()
        return x / 4, x[:4].sum(0, keepdim=True) / 16


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(21, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])  # then a worker need not import it
    options = {"num_workers": 1, "multiprocessing_context": context, "persistent_workers": True}
    loader = DataLoader(Corpus(), batch_size=16, **options)
    for epoch in range(5):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
