import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecaster(nn.Module):
    def __init__(self, features=16, width=48):
        super().__init__()
        self.read = nn.Linear(features, width)
        self.carry = nn.Linear(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, window, hidden):
        for t in range(window.size(1)):
            hidden = torch.tanh(self.read(window[:, t]) + self.carry(hidden))
        return self.head(hidden), hidden


def main():
    torch.manual_seed(0)
    x = torch.randn(32 * 90, 6, 16)
    y = x.mean(dim=(1, 2)).unsqueeze(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32)
    model = Forecaster()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    hidden = torch.zeros(32, 48)
    for step, (window, target) in enumerate(loader):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            prediction, hidden = model(window, hidden)
            loss = nn.functional.mse_loss(prediction.float(), target)
        opt.zero_grad()
        loss.backward(retain_graph=True)
        opt.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
