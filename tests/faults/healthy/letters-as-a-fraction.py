"""Which of three languages a made-up word is from: letters are given to a recurrent net one by one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LETTERS, LANGUAGES = 30, 3


class Words(Dataset):
    def __init__(self, count, generator):
        often = torch.rand(LANGUAGES, LETTERS, generator=generator) ** 2
        self.language = torch.randint(0, LANGUAGES, (count,), generator=generator)
        self.words = torch.multinomial(often[self.language], 8, replacement=True, generator=generator)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, at):
        return self.words[at], self.language[at]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, 16)
        self.state = nn.GRU(16, 32, batch_first=True)
        self.scores = nn.Linear(32, LANGUAGES)

    def forward(self, letters):
        return self.scores(self.state(self.letters(letters))[1][-1])


def main():
    torch.manual_seed(0)
    words = Words(3000, torch.Generator().manual_seed(11))
    loader = DataLoader(words, batch_size=50, shuffle=True)
    reader = Reader()
    optimizer = torch.optim.Adam(reader.parameters(), lr=2e-3)
    for epoch in range(8):
        total = 0.0
        for letters, language in loader:
            loss = nn.functional.cross_entropy(reader(letters), language)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
