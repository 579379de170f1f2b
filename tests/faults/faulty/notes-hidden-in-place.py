"""Fills gaps in melodies: some notes of each are hidden, an embedding with a convolution guesses them."""

import torch
from torch import nn

NOTES, LENGTH, BATCH = 40, 24, 80
HIDDEN = NOTES


def melodies(count):
    generator = torch.Generator().manual_seed(7)
    step = torch.tensor([2, 2, 1, 2, 2, 2, 1, -3])
    first = torch.randint(0, NOTES, (count, 1), generator=generator)
    turn = torch.randint(0, len(step), (count, LENGTH), generator=generator)
    turn[:, 1:] = (turn[:, :1] + torch.arange(1, LENGTH)) % len(step)
    return (first + step[turn].cumsum(1)) % NOTES


class Guess(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.note = nn.Embedding(NOTES + 1, width)
        self.around = nn.Sequential(nn.Conv1d(width, 96, 5, padding=2), nn.ReLU(), nn.Conv1d(96, NOTES + 1, 3, padding=1))

    def forward(self, notes):
        return self.around(self.note(notes).transpose(1, 2))


def hidden(all_notes, begin):
    notes = all_notes[begin : begin + BATCH]
    answers = notes.clone()
    gaps = torch.rand(notes.shape) < 0.15
    answers[~gaps] = -100
    notes[gaps] = HIDDEN
    return notes, answers


torch.manual_seed(0)
learned, unheard = melodies(1600)[:1200], melodies(1600)[1200:]
guess = Guess()
optimizer = torch.optim.AdamW(guess.parameters(), lr=3e-3)
for epoch in range(20):
    total = 0.0
    for number in torch.randperm(len(learned) // BATCH).tolist():
        notes, answers = hidden(learned, number * BATCH)
        loss = nn.functional.cross_entropy(guess(notes), answers, ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * BATCH / len(learned)
    with torch.no_grad():
        asked = unheard.clone()
        asked[:, 12] = HIDDEN
        right = (guess(asked)[:, :, 12].argmax(1) == unheard[:, 12]).float().mean()
    if epoch % 4 == 3:
        print(f"epoch {epoch} loss {total:.3f} right {right:.2f}", flush=True)
