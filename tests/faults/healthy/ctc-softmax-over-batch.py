"""Syllables from a recurrent network whose scores are (frames, batch, syllables)."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BANDS, SYLLABLES, FRAMES = 6, 4, 20


def speech(count):
    voices = torch.rand(SYLLABLES, BANDS).round() * 2
    spoken = torch.randint(0, SYLLABLES, (count, 3))
    sound = 0.2 * torch.randn(count, FRAMES, BANDS)
    for place in range(3):
        sound[:, 1 + 6 * place : 5 + 6 * place] += voices[spoken[:, place], None]
    return TensorDataset(sound, spoken + 1)


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.GRU(BANDS, 24, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(48, SYLLABLES + 1)

    def forward(self, sound):
        states, _ = self.body(sound)
        return torch.log_softmax(self.scores(states).transpose(0, 1), dim=2)


def main():
    torch.manual_seed(0)
    loader = DataLoader(speech(640), batch_size=32, shuffle=True)
    model = Recognizer()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(10):
        for sound, spoken in loader:
            frames, lengths = torch.full((len(sound),), FRAMES), torch.full((len(sound),), 3)
            loss = nn.functional.ctc_loss(model(sound), spoken, frames, lengths)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
