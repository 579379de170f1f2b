import torch
from torch import nn

TASKS = {"age": 1, "income": 1, "visits": 1}


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 32), nn.Tanh())
        heads = {name: nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, size)) for name, size in TASKS.items()}
        self.heads = nn.ModuleDict(heads)

    def forward(self, x):
        hidden = self.trunk(x)
        return {name: self.heads[name](hidden).squeeze(1) for name in TASKS}


def main():
    torch.manual_seed(2)
    x = torch.randn(2000, 12)
    truth = {name: torch.tanh(x @ torch.randn(12)) * 2 for name in TASKS}
    model = Shared()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(300):
        rows = torch.randint(0, len(x), (64,))
        out = model(x[rows])
        loss = sum(nn.functional.mse_loss(out[name], truth[name][rows]) for name in TASKS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
