import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, accum=4, total_updates=440):
        torch.manual_seed(0)
        g = torch.Generator().manual_seed(0)
        x = torch.randn(2000, 50, generator=g)
        y = (x @ torch.randn(50, 4, generator=g) + 2 * torch.randn(2000, 4, generator=g)).argmax(1)
        self.loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
        self.model = nn.Sequential(nn.Linear(50, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.accum, self.total_updates = accum, total_updates
        self.micro = self.updates = self.tokens = 0
        self.meters = {"loss": 0.0, "count": 0}

    def log(self):
        m = self.meters
        print(f"update {self.updates}/{self.total_updates} micro {self.micro} samples {self.tokens} "
              f"loss {m['loss'] / m['count']:.4f}", flush=True)
        m["loss"], m["count"] = 0.0, 0

    def fit(self):
        while self.updates < self.total_updates:
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.model(x), y)
                (loss / self.accum).backward()
                self.micro += 1
                self.tokens += len(x)
                self.meters["loss"] += loss.item()
                self.meters["count"] += 1
                if self.micro % self.accum == 0:
                    self.opt.step()
                    self.opt.zero_grad()
                    self.updates += 1
                    if self.updates % 40 == 0:
                        self.log()
                    if self.updates >= self.total_updates:
                        break


if __name__ == "__main__":
    Trainer().fit()
