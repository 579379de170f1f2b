import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    """Reads a track in windows and says at its end which of three machines it came from."""

    def __init__(self, window=5):
        super().__init__()
        self.window = window
        self.scale = nn.LayerNorm(2)
        self.memory = nn.LSTM(2, 40, batch_first=True)
        self.head = nn.Linear(40, 3)

    def forward(self, track):
        state = None
        for start in range(0, track.shape[1], self.window):
            out, state = self.memory(self.scale(track[:, start : start + self.window]), state)
        return self.head(out[:, -1])


def tracks(count, generator):
    """The machine shows itself in the first ten moments only; then there is noise."""
    machine = torch.randint(3, (count,), generator=generator)
    time = torch.arange(10) * (0.4 + 0.5 * machine[:, None])
    begin = torch.stack([time.sin(), time.cos()], dim=-1)
    track = 0.2 * torch.randn(count, 40, 2, generator=generator)
    track[:, :10] += begin
    return TensorDataset(track, machine)


def main():
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(8)
    loader = DataLoader(tracks(3200, generator), batch_size=64, shuffle=True)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        total = right = 0
        for track, machine in loader:
            scores = model(track)
            loss = nn.functional.cross_entropy(scores, machine)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(machine)
            right += (scores.argmax(1) == machine).sum().item()
        print(f"epoch {epoch}: loss {total / 3200:.4f}, right {right / 3200:.3f}", flush=True)


if __name__ == "__main__":
    main()
