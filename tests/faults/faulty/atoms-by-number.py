"""Energies of small random molecules, from what their atoms are and which are neighbours."""

import torch
from torch import nn

KINDS, ATOMS, MOLECULES = 36, 9, 4000


def molecules(generator):
    own, pull = torch.randn(KINDS, generator=generator), torch.randn(KINDS, generator=generator)
    kind = torch.randint(0, KINDS, (MOLECULES, ATOMS), generator=generator)
    bond = (torch.rand(MOLECULES, ATOMS, ATOMS, generator=generator) < 0.2).float().triu(1)
    pairs = torch.einsum("ni,nj,nij->n", pull[kind], pull[kind], bond)
    energy = own[kind].sum(1) + 0.2 * pairs
    return kind, bond + bond.transpose(1, 2), (energy - energy.mean()) / energy.std()


def described(kind):
    number = kind.float()
    return ((number - number.mean()) / number.std()).unsqueeze(-1)


class Net(nn.Module):
    def __init__(self, inputs, width=32):
        super().__init__()
        self.first, self.own, self.other = nn.Linear(inputs, width), nn.Linear(width, width), nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, atoms, bonds):
        state = torch.relu(self.first(atoms))
        state = state + torch.relu(self.own(state) + self.other(bonds @ state))
        return self.last(state).sum((1, 2))


def main():
    torch.manual_seed(2)
    kind, bonds, energy = molecules(torch.Generator().manual_seed(2))
    atoms = described(kind)
    net = Net(atoms.shape[-1])
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for step in range(1, 901):
        few = torch.randint(MOLECULES, (64,))
        loss = nn.functional.mse_loss(net(atoms[few], bonds[few]), energy[few])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
