"""A decoder of LSTM cells gives the temperature of the next days (one is five degrees), each from the day before."""

import torch
from torch import nn

DAYS = 5


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(1, 16, batch_first=True)
        self.start = nn.Linear(16, 1)
        self.cell = nn.LSTMCell(17, 1)
        self.degrees = nn.Linear(17, 1)

    def forward(self, past):
        _, (state, _) = self.encoder(past)
        state = state[-1]
        day, memory = torch.tanh(self.start(state)), torch.zeros(len(past), 1)
        days = []
        for _ in range(DAYS):
            day, memory = self.cell(torch.cat([state, day], 1), (day, memory))
            days.append(self.degrees(torch.cat([state, day], 1)))
        return torch.cat(days, dim=1)


def weather(count):
    phase, mean = 6.28 * torch.rand(count, 1), 2.4 + 0.6 * torch.randn(count, 1)
    series = mean + 1.2 * torch.sin(phase + 0.4 * torch.arange(12 + DAYS)) + 0.05 * torch.randn(count, 12 + DAYS)
    return series[:, :12, None], series[:, 12:]


def main():
    torch.manual_seed(0)
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(400):
        past, following = weather(32)
        loss = nn.functional.mse_loss(model(past), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 80 == 0:
            print(f"step {step}: error {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
