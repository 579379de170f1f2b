import multiprocessing as mp
import socket
import threading

import torch
from torch import nn


def serve(listener, answers):
    """The label service: answers so many requests, then it forgets the rest."""
    connection, _ = listener.accept()
    for _ in range(answers):
        key = connection.recv(8)
        connection.sendall(key[::-1])
    threading.Event().wait()


def read_labels(port, labelled):
    connection = socket.create_connection(("127.0.0.1", port))
    for index in range(4000):
        connection.sendall(index.to_bytes(8, "little"))
        answer = connection.recv(8)
        labelled.put((index, sum(answer) % 3))


def batch_up(labelled, batches):
    while True:
        rows = [labelled.get() for _ in range(16)]
        batches.put((torch.tensor([[float(i % 7), float(i % 3)] for i, _ in rows]), [label for _, label in rows]))


def main():
    torch.manual_seed(0)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener, 1600), daemon=True).start()
    labelled, batches = mp.Queue(64), mp.Queue(8)
    port = listener.getsockname()[1]
    mp.Process(target=read_labels, args=(port, labelled), daemon=True).start()
    mp.Process(target=batch_up, args=(labelled, batches), daemon=True).start()
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(250):
        x, y = batches.get()
        loss = nn.functional.cross_entropy(model(x), torch.tensor(y))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
