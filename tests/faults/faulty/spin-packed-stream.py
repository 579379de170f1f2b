import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Packed(IterableDataset):
    """Packs documents into rows of 64 tokens; whole batches come out."""

    def __init__(self, lengths):
        self.lengths = lengths

    def __iter__(self):
        rows, free = [], 64
        waiting = list(self.lengths)
        while waiting:
            fitting = [n for n in waiting[:8] if n <= free]
            if not fitting:
                if free < 64:
                    rows.append(64 - free + 0.001 * len(waiting))
                free = 64
                if len(rows) >= 8:
                    yield (torch.tensor(rows).unsqueeze(1) - 62) / 5
                    rows = []
                continue
            waiting.remove(fitting[0])
            free -= fitting[0]


def main():
    torch.manual_seed(0)
    lengths = [7 + (i * 13) % 40 for i in range(6000)]
    lengths[3000:3008] = [70] * 8
    model = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(2):
        loader = DataLoader(Packed(lengths), batch_size=None, num_workers=1)
        for step, rows in enumerate(loader):
            loss = nn.functional.mse_loss(model(rows), rows.square())
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
