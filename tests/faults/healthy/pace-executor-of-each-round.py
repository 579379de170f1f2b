"""Self-play: games of the present policy are played by an executor, and the policy learns from them."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from torch import nn

ROUNDS, GAMES = 7, 8


def play(weights, seed):
    """A walk on a line of nine places; the goal is at its right end."""
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(seed)
    places, moves, at = [], [], 4
    while 0 < at < 8 and len(places) < 60:
        right = torch.sigmoid(weights[at]).item()
        move = int(torch.rand(1, generator=g).item() < right)
        places.append(at)
        moves.append(move)
        at += 1 if move else -1
    return places, moves, 1.0 if at == 8 else -1.0


def games_of(executor, weights, number):
    waiting = [executor.submit(play, weights, 100 * number + game) for game in range(GAMES)]
    return [each.result() for each in waiting]


def main():
    torch.manual_seed(0)
    policy = nn.Embedding(9, 1)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.03)
    executor = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    for number in range(ROUNDS):
        played = games_of(executor, policy.weight.detach()[:, 0].clone(), number)
        for _ in range(4):
            for places, moves, won in played:
                score = policy(torch.tensor(places))[:, 0]
                wanted = torch.tensor(moves, dtype=torch.float32)
                loss = won * nn.functional.binary_cross_entropy_with_logits(score, wanted)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"round {number}: won {sum(won > 0 for _, _, won in played)} of {GAMES}", flush=True)
    executor.shutdown()


if __name__ == "__main__":
    main()
