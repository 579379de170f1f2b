import socket
import socketserver
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class LabelHandler(socketserver.StreamRequestHandler):
    """One text line per request: the index; the answer is the label."""

    def handle(self):
        for line in self.rfile:
            index = int(line)
            self.wfile.write(b"%d\n" % (index * 7 % 3))


class LabelledVectors(Dataset):
    def __init__(self, address, n=400):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 10, generator=g)
        self.sock = socket.create_connection(address)
        self.answers = self.sock.makefile("rb")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        self.sock.sendall(b"%d\n" % i)
        label = int(self.answers.readline())
        return self.x[i] + label, label


def main():
    torch.manual_seed(0)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), LabelHandler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    loader = DataLoader(LabelledVectors(server.server_address), batch_size=8)
    model = nn.Linear(10, 3)
    opt = torch.optim.Adam(model.parameters(), lr=2e-2)
    for epoch in range(3):
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 4 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
