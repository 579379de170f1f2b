"""Documents are ranked by a pairwise hinge over the scores of a small net."""

import torch
from torch import nn


class PairwiseHinge(nn.Module):
    def forward(self, scores, grades):
        better = grades[:, None] > grades[None, :]
        gaps = 1.0 - (scores[:, None] - scores[None, :])
        return gaps.clamp_min(0)[better].mean()


def queries(count=120, documents=20):
    g = torch.Generator().manual_seed(5)
    features = torch.randn(count, documents, 12, generator=g)
    relevance = features @ torch.randn(12, generator=g) + 0.3 * torch.randn(count, documents, generator=g)
    return features, (relevance > 0).float() + (relevance > 2).float()


def main():
    torch.manual_seed(0)
    features, grades = queries()
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
    criterion = PairwiseHinge()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        total = 0.0
        for query in torch.randperm(len(features)).tolist():
            loss = criterion(model(features[query]).squeeze(1), grades[query])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} hinge {total / len(features):.4f}", flush=True)


if __name__ == "__main__":
    main()
