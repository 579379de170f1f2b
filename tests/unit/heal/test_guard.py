"""`unstuck.guard`: what it skips and scales down, that the training recovers, and that a healthy one is left alone."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import unstuck
from tests.unit.heal.trainings import STEPS, recurrent, regression, same, weights
from unstuck.heal import bad_steps, gradient_norm, step_guard

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.03, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, 0.01),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.01),
    "fused": lambda p: torch.optim.Adam(p, 0.01, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.003),
}
EVERY = [pytest.param(make, id=name) for name, make in OPTIMIZERS.items()]
NAN = {0, 40, 41, 90, 200}
SPIKES = {60, 120, 121, 220}


@pytest.fixture(params=["read at once", "decided on the device"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways on the CPU: the second is what a GPU gets."""
    if request.param != "read at once":
        monkeypatch.setattr(gradient_norm, "decided_on_device", lambda _: True)
    return str(request.param)


# --- a healthy training is left alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.usefixtures("device")
def test_a_healthy_training_is_the_same_bit_for_bit(make: Callable[[Any], Any], capfd: Any) -> None:
    _, plain, _ = regression(make=make)
    _, guarded, guard = regression(unstuck.guard, make=make)
    assert same(weights(plain), weights(guarded))
    assert (guard.steps, guard.skipped, guard.clipped, guard.rate) == (STEPS, 0, 0, 1.0)
    assert capfd.readouterr().err == ""


# --- bad steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.usefixtures("device")
def test_it_recovers_from_nan_and_spikes(make: Callable[[Any], Any], capfd: Any) -> None:
    twin, _, _ = regression(make=make)
    broken, _, _ = regression(make=make, nan=NAN)
    loss, _, guard = regression(unstuck.guard, make=make, nan=NAN, spikes=SPIKES)
    guard.state_dict()  # on a device the last ones are read here
    assert math.isnan(broken)
    assert loss < 1.5 * twin + 0.01
    assert (guard.skipped, guard.clipped) == (len(NAN), len(SPIKES))
    said = capfd.readouterr().err
    assert "step 1: gradient norm is NaN: step skipped\n" in said
    assert "scaled down" in said


def test_a_skipped_step_changes_neither_weights_nor_state() -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    unstuck.guard(optimizer)
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    before, state = weights(model), [dict(optimizer.state[p]) for p in model.parameters()]
    kept = [{key: value.clone() for key, value in each.items()} for each in state]
    model.weight.grad[0, 1] = torch.inf
    optimizer.step()
    assert same(before, weights(model))
    assert all(torch.equal(a[key], b[key]) for a, b in zip(state, kept, strict=True) for key in a)


def test_a_fused_optimizer_skips_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_norm, "decided_on_device", lambda _: True)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1, fused=True)
    unstuck.guard(optimizer)
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    before, moment = weights(model), optimizer.state[model.weight]["exp_avg"].clone()
    model.weight.grad[0, 1] = torch.nan
    optimizer.step()
    assert same(before, weights(model))
    assert torch.equal(moment, optimizer.state[model.weight]["exp_avg"])
    assert not {"grad_scale", "found_inf"} & set(optimizer.__dict__)


def test_on_a_device_nothing_is_read_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading one number of a GPU waits for all its work."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class NoReading(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            assert "_local_scalar_dense" not in str(func)
            return func(*args, **(kwargs or {}))

    monkeypatch.setattr(gradient_norm, "decided_on_device", lambda _: True)
    monkeypatch.setattr(gradient_norm.LateNorms, "arrived", lambda *_, **__: [])  # those copies are on the host
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    guard = unstuck.guard(optimizer)
    guard._history.limit, guard._history.usual = 1e-3, 1e-4
    before = weights(model)
    model(torch.ones(2, 3)).sum().backward()
    with NoReading():
        optimizer.step()
    moved = torch.cat([(a - b).flatten() for a, b in zip(before, weights(model), strict=True)]).norm()
    assert float(moved) == pytest.approx(0.1 * 1e-4, rel=1e-2)


@pytest.mark.parametrize("fused", [False, True])
def test_on_a_device_it_launches_as_few_kernels_for_many_parameters(
    fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is some microseconds of the CPU's time, at every step."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Launches(TorchDispatchMode):  # type: ignore[misc]
        count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += not any(word in str(func) for word in ("view", "detach", "_local_scalar_dense"))
            return func(*args, **(kwargs or {}))

    def launched(layers: int, guarded: bool) -> int:
        model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(layers)))
        # without the guard's flags, an optimizer that is fused launches no more
        optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=fused, foreach=None if fused else True)
        if guarded:
            unstuck.guard(optimizer)._history.add(*[1.0] * 60)
        for _ in range(2):
            model(torch.ones(1, 2)).sum().backward()
            with Launches() as launches:
                optimizer.step()
        return int(launches.count)

    monkeypatch.setattr(gradient_norm, "decided_on_device", lambda _: True)
    more = {layers: launched(layers, True) - launched(layers, False) for layers in (1, 12)}
    assert more[1] == more[12] <= 11


def test_an_exploding_recurrent_net_reaches_what_clipping_by_hand_does() -> None:
    twin, _ = recurrent(clip=1.0)
    plain, _ = recurrent()
    loss, guard = recurrent(unstuck.guard)
    assert not plain < 10 * twin
    assert loss < 1.3 * twin + 0.01
    assert guard.skipped + guard.clipped >= 3


# --- with what people use ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["scheduler", "guard"])
def test_schedulers_before_and_after_it(first: str) -> None:
    """They wrap step() too, and warn if somebody else does (warnings are errors here)."""
    schedulers = []

    def make(parameters: Any) -> Any:
        optimizer = torch.optim.SGD(parameters, 0.03)
        if first == "scheduler":
            schedulers.append(torch.optim.lr_scheduler.StepLR(optimizer, 50, 0.9))
        return optimizer

    def guarded(optimizer: Any) -> Any:
        guard = unstuck.guard(optimizer)
        if first == "guard":
            schedulers.append(torch.optim.lr_scheduler.StepLR(optimizer, 50, 0.9))
        return guard

    def update(optimizer: Any, loss: Any, _: int) -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        schedulers[0].step()

    _, _, guard = regression(guarded, make=make, nan={0, 9}, update=update, steps=100)
    assert guard.skipped == 2
    assert schedulers[0].get_last_lr() == [pytest.approx(0.03 * 0.9**2)]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("fused", [False, True])
def test_grad_scaler(fused: bool) -> None:
    """Norms are those of the unscaled gradients; what the scaler skips is its own affair."""
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)

    def update(optimizer: Any, loss: Any, _: int) -> None:
        optimizer.zero_grad()
        scaler.scale(loss()).backward()
        scaler.step(optimizer)
        scaler.update()

    def make(parameters: Any) -> Any:
        return torch.optim.Adam(parameters, 0.01, fused=fused)

    twin, _, _ = regression(make=make, update=update)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)
    loss, _, guard = regression(unstuck.guard, make=make, nan={30}, spikes={60, 120}, update=update)
    guard.state_dict()
    assert loss < 1.5 * twin + 0.01
    assert (guard.skipped, guard.clipped) == (0, 2)
    assert sorted(guard.state_dict()["norms"])[80] < 10, "not 1024 times that"


def test_accumulation_counts_steps_not_batches() -> None:
    def update(optimizer: Any, loss: Any, step: int) -> None:
        (loss() / 4).backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()

    loss, _, guard = regression(unstuck.guard, nan={101, 102}, update=update)
    assert (guard.steps, guard.skipped) == (STEPS // 4, 1)
    assert math.isfinite(loss)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("make", [OPTIMIZERS["adam"], lambda p: torch.optim.LBFGS(p, 0.05, max_iter=4)])
def test_closures(make: Callable[[Any], Any]) -> None:
    def update(optimizer: Any, loss: Any, _: int) -> None:
        def closure() -> Any:
            optimizer.zero_grad()
            value = loss()
            value.backward()
            return value

        assert optimizer.step(closure) is not None

    twin, plain, _ = regression(make=make, update=update)
    _, same_as_plain, _ = regression(unstuck.guard, make=make, update=update)
    loss, _, guard = regression(unstuck.guard, make=make, nan={0, 50, 100}, update=update)
    guard.state_dict()
    assert same(weights(plain), weights(same_as_plain))
    assert guard.skipped == 3
    assert loss < 1.5 * twin + 0.02


def test_a_line_search_that_gets_lost_is_undone() -> None:
    """The second call of the closure has a NaN gradient: weights are back where the step began."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), 1.0, max_iter=5)
    guard = unstuck.guard(optimizer)
    before, calls = weights(model), 0

    def closure() -> Any:
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = (model(torch.ones(3, 2)) - 4).pow(2).mean() * (torch.nan if calls == 2 else 1.0)
        loss.backward()
        return loss

    optimizer.step(closure)
    assert calls == 2
    assert same(before, weights(model))
    assert guard.skipped == 1


def test_two_optimizers_are_judged_apart() -> None:
    a, b = nn.Linear(2, 1), nn.Linear(2, 1)
    first, second = torch.optim.SGD(a.parameters(), 0.1), torch.optim.SGD(b.parameters(), 0.1)
    guards = unstuck.guard(first), unstuck.guard(second)
    before = weights(a), weights(b)
    (a(torch.ones(1, 2)).sum() + b(torch.full((1, 2), torch.nan)).sum()).backward()
    first.step()
    second.step()
    assert [guard.skipped for guard in guards] == [0, 1]
    assert not same(before[0], weights(a))
    assert same(before[1], weights(b))


@pytest.mark.usefixtures("device")
def test_sparse_and_half_precision_gradients() -> None:
    table = nn.Embedding(10, 4, sparse=True)
    optimizer = torch.optim.SGD(table.parameters(), 0.1)
    guard = unstuck.guard(optimizer)
    before = weights(table)
    table(torch.tensor([1, 1, 2])).sum().mul(torch.nan).backward()
    optimizer.step()
    assert same(before, weights(table))
    half = nn.Parameter(torch.zeros(4, dtype=torch.float16))
    half.grad = torch.full((4,), 60_000.0, dtype=torch.float16)
    assert float(gradient_norm.total_norm([half.grad])) == pytest.approx(120_000)
    guard.state_dict()
    assert guard.skipped == 1


KINDS: dict[str, Callable[[], Any]] = {
    "sparse": lambda: torch.sparse_coo_tensor([[1, 3]], [0.1, 0.2], (6,), check_invariants=False),
    "half": lambda: torch.full((6,), 0.1, dtype=torch.float16),
    "half, beyond its range when squared": lambda: torch.full((6,), 300.0, dtype=torch.float16),
    "bfloat16": lambda: torch.full((6,), 0.1, dtype=torch.bfloat16),
    "double": lambda: torch.full((6,), 0.1, dtype=torch.float64),
    "complex": lambda: torch.full((6,), 0.1 + 0.1j),
    "strided": lambda: torch.full((3, 4), 0.1).t()[::2],
    "expanded": lambda: torch.tensor([0.1]).expand(6).clone()[:6:2],
    "of one": lambda: torch.tensor(0.1),
    "empty": lambda: torch.zeros(0),
}


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in KINDS.items()])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e4])
def test_any_kind_of_gradient_is_judged_in_the_midst_of_ordinary_steps(make: Callable[[], Any], bad: float) -> None:
    """Beside an ordinary one, once in front of it and once after it."""
    for position in (0, 1):
        odd, plain = nn.Parameter(torch.zeros_like(make().to_dense())), nn.Parameter(torch.zeros(5))
        both = [odd, plain] if position == 0 else [plain, odd]
        optimizer = torch.optim.SGD(both, 1e-6)
        guard = unstuck.guard(optimizer)

        def step(times: float = 1.0, parts: tuple[Any, Any] = (odd, plain), opt: Any = optimizer) -> None:
            gradient = make()
            if gradient.numel() > 0:
                elements = gradient._values() if gradient.is_sparse else gradient
                elements[(slice(-1, None),) * elements.dim()] *= times
            else:
                times, gradient = 1.0, gradient * times
            parts[0].grad, parts[1].grad = gradient, torch.full((5,), 0.1)
            opt.step()

        for _ in range(45):
            step()
        assert (guard.steps, guard.skipped, guard.clipped) == (45, 0, 0)
        step(bad)
        empty = make().numel() == 0
        overflows = bad == 1e4 and not math.isfinite(float((make().to_dense() * bad).abs().max())) if not empty else 0
        skipped = not empty and (not math.isfinite(bad) or overflows)
        assert (guard.skipped, guard.clipped) == (int(skipped), int(not empty and not skipped))
        assert all(bool(torch.isfinite(p).all()) for p in both)


# --- what follows from bad steps --------------------------------------------------------------------------------


def test_the_rate_is_halved_after_bad_steps_and_grows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bad_steps, "GROW_AFTER_STEPS", 10)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    guard = unstuck.guard(optimizer, back_off_after=2)

    def step(value: float) -> float:
        before = model.weight.detach().clone()
        model.weight.grad = torch.full((1, 2), value)
        optimizer.step()
        assert optimizer.param_groups[0]["lr"] == 0.1
        return float((before - model.weight).detach()[0, 0])

    assert step(1.0) == pytest.approx(0.1)
    for _ in range(5):
        step(math.nan)
    assert guard.rate == 0.5
    assert step(1.0) == pytest.approx(0.05)
    for _ in range(9):
        step(1.0)
    assert step(1.0) == pytest.approx(0.1)


def test_rollback_goes_back_to_weights_that_were_good(capfd: Any) -> None:
    """Something else than a step spoils the weights: every gradient is NaN from then on."""

    def update(optimizer: Any, loss: Any, step: int) -> None:
        if step == 150:
            with torch.no_grad():
                optimizer.param_groups[0]["params"][0].fill_(torch.nan)
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    twin, _, _ = regression()
    loss, _, guard = regression(lambda o: unstuck.guard(o, rollback=True), update=update, steps=2 * STEPS)
    assert guard.rolled_back == 1
    assert loss < 1.5 * twin + 0.02
    assert "weights back to those of step 105" in capfd.readouterr().err


@pytest.mark.usefixtures("device")
def test_a_net_that_explodes_at_once_is_rolled_back_until_the_rate_is_small_enough() -> None:
    def make(parameters: Any) -> Any:
        return torch.optim.SGD(parameters, 300.0)

    def linear() -> Any:
        return nn.Linear(6, 1)

    loss, model, guard = regression(lambda o: unstuck.guard(o, rollback=True), make=make, model=linear)
    assert guard.rolled_back >= 1
    assert math.isfinite(loss)
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_batch_norm_statistics_are_restored(capfd: Any) -> None:
    def with_norm() -> Any:
        return nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))

    torch.manual_seed(0)
    models = []

    def make(parameters: Any) -> Any:
        return torch.optim.Adam(parameters, 0.01)

    def build() -> Any:
        models.append(with_norm())
        return models[0]

    loss, model, _ = regression(lambda o: unstuck.guard(o, model=models[0]), make=make, nan={0, 70}, model=build)
    assert math.isfinite(loss)
    assert bool(torch.isfinite(model[0].running_mean).all())
    assert "restored 2 buffers" in capfd.readouterr().err


def test_it_gives_up_where_nothing_helps() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    unstuck.guard(optimizer, max_bad=20)

    def step() -> None:
        model.weight.grad = torch.full((1, 2), math.nan)
        optimizer.step()

    for _ in range(19):
        step()
    with pytest.raises(RuntimeError, match=r"the last 20 steps all had a bad gradient, though all parameters are fini"):
        step()
    with torch.no_grad():
        model.weight.fill_(math.nan)
    with pytest.raises(RuntimeError, match="1 of 2 parameters are NaN"):
        step()


# --- checkpoints, removal, bad input ----------------------------------------------------------------------------


@pytest.mark.usefixtures("device")
def test_its_state_goes_through_a_checkpoint() -> None:
    _, _, guard = regression(unstuck.guard, nan={5}, spikes={100})
    file = io.BytesIO()
    torch.save({"guard": guard.state_dict()}, file)
    file.seek(0)
    fresh = unstuck.guard(torch.optim.SGD(nn.Linear(2, 1).parameters(), 0.1))
    fresh.load_state_dict(torch.load(file, weights_only=True)["guard"])
    assert fresh.state_dict() == guard.state_dict()
    assert (fresh._history.limit, fresh._history.usual) == (guard._history.limit, guard._history.usual)
    whole = guard.state_dict()
    for wrong in (None, {"norms": [1.0]}, {**whole, "rate": 0.0}, {**whole, "rate": math.nan}, {**whole, "steps": "x"}):
        with pytest.raises(ValueError, match=r"not the state of an unstuck\.guard"):
            fresh.load_state_dict(wrong)  # type: ignore[arg-type]
    assert fresh.state_dict() == whole


def test_it_can_be_removed() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), 0.1)
    guard = unstuck.guard(optimizer)
    guard.remove()
    guard.remove()
    assert "step" not in optimizer.__dict__
    again = unstuck.guard(optimizer)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    again.remove()  # what the scheduler has wrapped stays
    optimizer.param_groups[0]["params"][0].grad = torch.full((1, 2), math.nan)
    optimizer.step()
    assert again.steps == 0


def test_bad_input() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), 0.1)
    for wrong in (nn.Linear(2, 1), None, "sgd"):
        with pytest.raises(TypeError, match=r"takes an optimizer of torch\.optim"):
            unstuck.guard(wrong)
    with pytest.raises(TypeError, match="call it once for each"):
        unstuck.guard([optimizer])
    for value in (0, -1, 1.5, True, "3"):
        with pytest.raises(ValueError, match="back_off_after must be a whole number"):
            unstuck.guard(optimizer, back_off_after=value)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="max_bad must be a whole number"):
            unstuck.guard(optimizer, max_bad=value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="back_off_after must be a whole number"):
        unstuck.guard(optimizer, back_off_after=None)  # type: ignore[arg-type]
    flags: list[dict[str, Any]] = [{"clip": 1.0}, {"clip": None}, {"rollback": "yes"}]
    for options in flags:
        with pytest.raises(TypeError, match="must be True or False, not"):
            unstuck.guard(optimizer, **options)
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module"):
        unstuck.guard(optimizer, model=3)
    assert "step" not in optimizer.__dict__
    unstuck.guard(optimizer)
    with pytest.raises(ValueError, match="guarded already"):
        unstuck.guard(optimizer)
    assert step_guard.guard is unstuck.guard


def test_without_gradients_it_is_not_asked() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), 0.1)
    guard = unstuck.guard(optimizer)
    optimizer.step()
    assert guard.steps == 0
