"""An inference server with a model in memory that nobody asks just now."""

import asyncio

import torch
from torch import nn

model = nn.Linear(8, 1)


async def answer(reader, writer):
    await reader.readline()
    writer.write(str(model(torch.randn(1, 8)).item()).encode())
    writer.close()


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print("READY", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
