"""Handwritten lines read column by column: softmax over the letters, before time comes first."""

import torch
import torch.nn.functional as F
from torch import nn

HEIGHT, LETTERS, WIDTH = 10, 6, 30


def lines(count, shapes):
    page = 0.2 * torch.randn(count, HEIGHT, WIDTH)
    text = torch.randint(0, LETTERS, (count, 4))
    for place in range(4):
        page[:, :, 2 + 7 * place : 7 + 7 * place] += shapes[text[:, place]]
    return page, text + 1


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.columns = nn.Conv1d(HEIGHT, 32, 5, padding=2)
        self.letters = nn.Conv1d(32, LETTERS + 1, 3, padding=1)

    def forward(self, page):
        letters = self.letters(F.relu(self.columns(page)))
        return F.log_softmax(letters, dim=1).permute(2, 0, 1)


def main():
    torch.manual_seed(0)
    shapes = torch.rand(LETTERS, HEIGHT, 5).round()
    model = Reader()
    weights = list(model.parameters())
    squares = [torch.zeros_like(w) for w in weights]
    for step in range(300):
        page, text = lines(24, shapes)
        loss = F.ctc_loss(model(page), text, torch.full((24,), WIDTH), torch.full((24,), 4))
        loss.backward()
        with torch.no_grad():
            for w, square in zip(weights, squares):
                square.mul_(0.95).addcmul_(w.grad, w.grad, value=0.05)
                w.sub_(3e-3 * w.grad / (square.sqrt() + 1e-6))
                w.grad = None
        if step % 60 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
