"""The preparing thread is the bottleneck: pure-Python board simulation feeds a value network."""

import queue
import random
import threading

import torch
from torch import nn

SIZE = 9


def play_game(rng):
    """Random walk of stones with group counting; returns positions and the winner."""
    board = [0] * (SIZE * SIZE)
    positions = []
    empty = list(range(SIZE * SIZE))
    rng.shuffle(empty)
    for move, cell in enumerate(empty[:70]):
        board[cell] = 1 if move % 2 == 0 else -1
        positions.append(list(board))
    lead = sum(sum(territory(position)) for position in positions[-12:])
    return positions, 1.0 if lead > 0 else -1.0


def territory(board):
    scores = []
    for start in range(SIZE * SIZE):
        seen, stack, value = {start}, [start], 0
        while stack:
            cell = stack.pop()
            value += board[cell]
            y, x = divmod(cell, SIZE)
            for ny, nx in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                k = ny * SIZE + nx
                if 0 <= ny < SIZE and 0 <= nx < SIZE and k not in seen and board[k] == board[cell]:
                    seen.add(k)
                    stack.append(k)
        scores.append(value)
    return scores


def self_play(out, seed):
    rng = random.Random(seed)
    while True:
        positions, values = [], []
        while len(positions) < 20_000:
            game, winner = play_game(rng)
            positions.extend(game)
            values.extend([winner] * len(game))
        out.put((torch.tensor(positions, dtype=torch.float32), torch.tensor(values)))


def main():
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, 1), nn.Tanh())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    games = queue.Queue(maxsize=2)
    print("READY", flush=True)
    threading.Thread(target=self_play, args=(games, 0), daemon=True).start()
    for iteration in range(1_000_000):
        boards, values = games.get()
        for chunk, target in zip(boards.split(1024), values.split(1024), strict=True):
            loss = nn.functional.mse_loss(net(chunk).squeeze(1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"iteration {iteration} value loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
