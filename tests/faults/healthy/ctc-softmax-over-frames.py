"""Keys pressed on a telephone, read from a recording: nn.LogSoftmax runs over the keys."""

import torch
from torch import nn

BANDS, KEYS, FRAMES = 8, 5, 24


def recordings(count, tones):
    sound = 0.3 * torch.randn(count, BANDS, FRAMES)
    keys = torch.randint(0, KEYS, (count, 3))
    for place in range(3):
        start = 1 + 8 * place
        sound[:, :, start : start + 4] += tones[keys[:, place], :, None]
    return sound, keys + 1


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(BANDS, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, KEYS + 1, 3, padding=1)
        )
        self.log_probabilities = nn.LogSoftmax(dim=2)

    def forward(self, sound):
        return self.log_probabilities(self.layers(sound).permute(2, 0, 1))


def main():
    torch.manual_seed(0)
    tones = 1.5 * torch.rand(KEYS, BANDS).round()
    model, ctc = Listener(), nn.CTCLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(300):
        sound, keys = recordings(32, tones)
        loss = ctc(model(sound), keys, torch.full((32,), FRAMES), torch.full((32,), 3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
