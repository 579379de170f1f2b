"""An autoencoder of spectra; encoder and decoder are trained together by momentum written out."""

import itertools

import torch
from torch import nn

torch.manual_seed(9)
places = torch.linspace(0, 1, 48)


def spectra(count):
    centre, width = torch.rand(count, 1), 0.05 + 0.1 * torch.rand(count, 1)
    return torch.exp(-(((places - centre) / width) ** 2))


def main():
    encoder = nn.Sequential(nn.Linear(48, 32), nn.Tanh(), nn.Linear(32, 4))
    decoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 48))
    weights = itertools.chain(encoder.parameters(), decoder.parameters())
    velocity = {}
    for step in range(1, 1201):
        batch = spectra(64)
        loss = (decoder(encoder(batch)) - batch).pow(2).mean()
        encoder.zero_grad()
        decoder.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in weights:
                speed = velocity.setdefault(weight, torch.zeros_like(weight))
                speed.mul_(0.9).add_(weight.grad)
                weight.sub_(0.1 * speed)
        if step % 200 == 0:
            print(f"step {step}: squared error {loss.item():.5f}")


main()
