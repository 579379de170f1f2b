"""Tensors of classes of their own, as parameters and as data: each operation they hear of is counted, and printed."""

import sys
from hashlib import sha1

import torch
from torch.utils.data import DataLoader, TensorDataset

STEPS = int(sys.argv[1])
torch.manual_seed(0)
torch.set_num_threads(1)
heard = []


class Wrapped(torch.Tensor):
    """Holds another tensor and hears of each operation below autograd, as quantized and sharded tensors do."""

    @staticmethod
    def __new__(cls, inside):
        options = {"dtype": inside.dtype, "device": inside.device, "strides": inside.stride()}
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, **options)

    def __init__(self, inside):
        self.inside = inside

    def __repr__(self):
        heard.append("repr")
        return "Wrapped"

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        heard.append(str(function))

        def opened(thing):
            return thing.inside if type(thing) is Wrapped else thing

        arguments, options = torch.utils._pytree.tree_map(opened, (arguments, options or {}))
        result = function(*arguments, **options)
        if function is torch.ops.aten.detach.default:
            return Wrapped(result)
        return result


class Called(torch.nn.Parameter):
    """A parameter that hears of each function it is given to."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        heard.append(getattr(function, "__name__", str(function)))
        return super().__torch_function__(function, types, arguments, options or {})


class Scaled(torch.Tensor):
    """A loss, and a batch, with methods of their own."""

    def item(self):
        heard.append("item")
        return super().item()

    def detach(self):
        heard.append("detach")
        return super().detach()

    def numel(self):
        heard.append("numel")
        return super().numel()

    def __len__(self):
        heard.append("__len__")
        return super().__len__()

    def __format__(self, how):
        heard.append("__format__")
        return super().__format__(how)


def told(where):
    print(where, len(heard), sha1(" ".join(heard).encode()).hexdigest()[:12], *(heard if len(heard) < 30 else ()))
    heard.clear()


def train(where, weight, by_hand=False, kind=torch.Tensor):
    x = torch.randn(64, 4)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
    head = torch.nn.Linear(3, 1)
    parameters = [weight, *head.parameters()]
    optimizer = None if by_hand else torch.optim.SGD(parameters, lr=0.01)
    made = 0
    while made < STEPS:
        for batch, wanted in loader:
            loss = (head(batch.as_subclass(kind) @ weight) - wanted).square().mean().as_subclass(kind)
            loss.backward()
            if by_hand:
                with torch.no_grad():
                    for p in parameters:
                        p.data.sub_(p.grad * 0.01)
                        p.grad = None
            else:
                optimizer.step()
                optimizer.zero_grad()
            made += 1
            told(f"{where} {made}")
    print(where, loss.as_subclass(torch.Tensor).detach().item().hex(), flush=True)


train("wrapped", torch.nn.Parameter(Wrapped(torch.randn(4, 3))))
train("called", Called(torch.randn(4, 3)))
train("called, by hand", Called(torch.randn(4, 3)), by_hand=True)
train("scaled", torch.nn.Parameter(torch.randn(4, 3)), kind=Scaled)
train("wrapped, by hand", torch.nn.Parameter(Wrapped(torch.randn(4, 3))), by_hand=True)
