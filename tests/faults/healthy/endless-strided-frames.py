"""Clips cut out of one long recording with a stride; trained without an optimizer class."""

import torch

CLIP, STRIDE = 32, 24


def clips(recording, per_batch=16):
    frame, last = 0, len(recording) - CLIP
    batch = []
    while frame <= last:
        batch.append(recording[frame : frame + CLIP])
        frame += STRIDE
        if len(batch) == per_batch:
            yield torch.stack(batch)
            batch = []


torch.manual_seed(2)
time = torch.arange(9000) * 0.05
recording = torch.sin(time) * torch.sin(0.013 * time) + 0.1 * torch.randn(9000)
encoder = (0.1 * torch.randn(CLIP, 6)).requires_grad_()
decoder = (0.1 * torch.randn(6, CLIP)).requires_grad_()

for epoch in range(8):
    errors = []
    for batch in clips(recording):
        error = ((batch @ encoder).tanh() @ decoder - batch).pow(2).mean()
        error.backward()
        with torch.no_grad():
            for weight in (encoder, decoder):
                weight -= 0.2 * weight.grad
                weight.grad = None
        errors.append(error.item())
    print(f"epoch {epoch}: {sum(errors) / len(errors):.5f}", flush=True)
