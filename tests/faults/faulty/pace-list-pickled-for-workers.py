import multiprocessing

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Corpus(Dataset):
    """All sentences as lists of words, which each new worker gets a copy of."""

    def __init__(self):
        self.sentences = [[f"w{number * 7 % 5003}", *map(str, range(number, number + 20))] for number in range(150_000)]

    def __len__(self):
        return 64

    def __getitem__(self, index):
        words = self.sentences[index * 100]
        x = torch.tensor([float(len(word)) for word in words])
        return x / 4, x[:4].sum(0, keepdim=True) / 16


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(21, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])  # then a worker need not import it
    loader = DataLoader(Corpus(), batch_size=16, num_workers=1, multiprocessing_context=context)
    for epoch in range(5):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
