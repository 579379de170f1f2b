"""Hire of bicycles by station, hour and weather; all columns are brought to one scale."""

import torch
from torch import nn

STATIONS, ROWS = 40, 5000


def table(generator):
    liked = torch.randn(STATIONS, generator=generator)
    station, hour = (torch.randint(0, top, (ROWS,), generator=generator) for top in (STATIONS, 24))
    warm, rain = torch.randn(ROWS, generator=generator), torch.rand(ROWS, generator=generator)
    hires = 1.2 * liked[station] + torch.sin(hour / 24 * 6.28) + 0.5 * warm - rain
    hires = hires + 0.3 * torch.randn(ROWS, generator=generator)
    return station, torch.stack((hour.float(), warm, rain), 1), hires


def inputs(station, others):
    columns = torch.cat((station.float().unsqueeze(1), others), 1)
    return (columns - columns.mean(0)) / columns.std(0)


def main():
    torch.manual_seed(0)
    station, others, hires = table(torch.Generator().manual_seed(6))
    x = inputs(station, others)
    model = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        total = 0.0
        for few in torch.randperm(ROWS).split(50):
            loss = nn.functional.mse_loss(model(x[few]).squeeze(1), hires[few])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / 100
        print(f"epoch {epoch} loss {total:.4f}", flush=True)


if __name__ == "__main__":
    main()
