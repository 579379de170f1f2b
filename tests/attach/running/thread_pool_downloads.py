"""Main waits for threads that fetch shards from a slow server; bytes come all the time."""

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch


def serve(server):
    def feed(client):
        try:
            while True:
                client.send(b"x" * 20000)
                time.sleep(0.2)
        except OSError:
            os._exit(0)

    while True:
        client, _ = server.accept()
        threading.Thread(target=feed, args=(client,)).start()


def main():
    torch.manual_seed(0)
    server = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        serve(server)

    def fetch(number):
        connection = socket.create_connection(server.getsockname())
        got = 0
        while got < 60_000_000:
            got += len(connection.recv(65536))
        return number, got

    with ThreadPoolExecutor(4) as pool:
        print("READY", flush=True)
        print(list(pool.map(fetch, range(8))))


if __name__ == "__main__":
    main()
