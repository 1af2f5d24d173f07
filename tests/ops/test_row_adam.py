"""Adam of N readers, also one that leaves untouched rows for later, against torch.optim.Adam."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from asreader import ops
from asreader.ops.gru import combine_biases
from asreader.ops.row_adam import AdamRecipe, StackedParameter, make_adam
from asreader.ops.unique_rows import UniqueRows, find_unique_rows

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
VOCABULARY, WIDTH = 6, 12


def find_rows(rows: list[Tensor]) -> UniqueRows:
    batch = torch.stack(rows)[:, None, :]
    return find_unique_rows(batch, batch, VOCABULARY, bound=6, tokens=5)


class TorchReaders:
    """Each reader with torch.optim.Adam, clipping and a moving average of its own."""

    def __init__(self, start: dict[str, Tensor], recipe: AdamRecipe) -> None:
        self.recipe, self.count = recipe, 0
        self.weights = {name: [own.clone().requires_grad_() for own in stacked] for name, stacked in start.items()}
        self.averages = {name: stacked.clone() for name, stacked in start.items()}
        readers = zip(*self.weights.values(), strict=True)
        self.optimizers = [torch.optim.Adam(own, rate) for own, rate in zip(readers, recipe.rates, strict=True)]

    def step(self, gradients: dict[str, Tensor]) -> None:
        self.count += 1
        factor = self.recipe.factors[min(self.count, len(self.recipe.factors)) - 1]
        for n, optimizer in enumerate(self.optimizers):
            own = {name: weights[n] for name, weights in self.weights.items()}
            for name, weight in own.items():
                weight.grad = gradients[name][n].clone()
            torch.nn.utils.clip_grad_norm_(own.values(), self.recipe.clip)
            optimizer.param_groups[0]["lr"] = self.recipe.rates[n] * factor
            optimizer.step()
            newest = (1 - self.recipe.ema_decay) / (1 - self.recipe.ema_decay**self.count)
            for name, weight in own.items():
                self.averages[name][n].lerp_(weight.detach(), newest)

    def stacked(self, name: str) -> Tensor:
        return torch.stack(self.weights[name]).detach()


@pytest.mark.parametrize("implementation", ["reference", "triton"])
@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_readers_learn_as_with_pytorchs_adam_and_clipping(implementation: str, ema_decay: float) -> None:
    if implementation == "triton":
        pytest.importorskip("triton")
    torch.manual_seed(1)
    with DEVICE, ops.using(implementation, "row_adam", "grad_norm"):
        start = {"table": torch.randn(2, VOCABULARY, WIDTH), "matrix": torch.randn(2, 3, 5), "bias": torch.randn(2, 7)}
        recipe = AdamRecipe((0.01, 0.002), (1.0, 0.5, 0.25), clip=2.0, ema_decay=ema_decay)
        plain, steps = TorchReaders(start, recipe), torch.zeros(2)
        parameters = {
            name: StackedParameter(
                own.clone(), torch.zeros_like(own), torch.zeros_like(own), own.clone() if ema_decay else None
            )
            for name, own in start.items()
        }
        adam = make_adam(parameters, ["table"], steps, recipe)
        for step in range(12):
            rows = [torch.randint(1, 5 if step % 3 else 3, (4,)) for _ in range(2)]
            unique = find_rows(rows)
            vectors = adam.read_rows("table", unique)
            scale = 0.01 if step % 2 else 1.0  # clipped at some steps only
            gradients = {name: scale * torch.randn_like(own) for name, own in start.items()}
            gradients["table"] = torch.zeros_like(start["table"])
            own = torch.zeros(2, 6, WIDTH)
            for n, count in enumerate(unique.counts.tolist()):
                there = unique.rows[n, :count].long()
                torch.testing.assert_close(vectors[n, :count], plain.stacked("table")[n, there], rtol=2e-6, atol=1e-6)
                gradients["table"][n, there] = own[n, :count] = scale * torch.randn(count, WIDTH)
            plain.step(gradients)
            adam.step({**gradients, "table": own}, unique)
        adam.synchronize()
    assert steps.tolist() == [12, 12]
    for name, parameter in parameters.items():
        torch.testing.assert_close(parameter.weights, plain.stacked(name), rtol=1e-5, atol=1e-6)
        states = [optimizer.state[plain.weights[name][n]] for n, optimizer in enumerate(plain.optimizers)]
        moments = (torch.stack([state[key] for state in states]) for key in ("exp_avg", "exp_avg_sq"))
        torch.testing.assert_close((parameter.first, parameter.second), (*moments,), rtol=1e-4, atol=1e-7)
        if ema_decay:
            torch.testing.assert_close(parameter.average, plain.averages[name], rtol=1e-5, atol=1e-6)
    assert torch.equal(parameters["table"].weights[:, 0], start["table"][:, 0])


@pytest.mark.parametrize("decay", [0.0, 0.99])
def test_rows_end_where_adam_takes_them(decay: float) -> None:
    pytest.importorskip("triton")
    with DEVICE:
        _compare_rows(decay)


def _compare_rows(decay: float) -> None:
    from asreader.ops.row_adam import triton

    torch.manual_seed(1)
    readers, scale = 2, torch.tensor([1.0, 2.5])
    start = torch.randn(readers, VOCABULARY, WIDTH)
    factors = torch.linspace(1.0, 0.2, 100)  # then they stay
    plain = TorchReaders({"table": start}, AdamRecipe((0.01, 0.002), factors.tolist(), 1e9, decay))
    steps = torch.zeros(readers, 3)
    deferred = triton.make_tables(
        start.clone(), torch.zeros_like(start), torch.zeros_like(start), torch.tensor([0.01, 0.002]), steps[:, 0],
        factors=factors, average=start.clone() if decay else None, decay=decay,
    )  # fmt: skip
    for step in range(200):
        if 12 < step < 195 and step % 8 and step != 175:  # nothing is read: Triton's interpreter is slow
            steps += 1
            plain.step({"table": torch.zeros_like(start)})
            continue
        # One row occurs only at the beginning and at the end, beyond the steps that are taken one by one.
        rows = [torch.randint(1, 3 if step % 3 else 5, (4,)) for _ in range(readers)]
        if step in (2, 175, 199):
            rows = [torch.tensor([5, 1, 1, 1])] * readers
        unique = find_rows(rows)
        vectors = deferred.read_rows(steps[:, 0], unique, torch.float32)
        assert torch.equal(vectors[..., WIDTH:], torch.eye(8)[0].expand(readers, 6, 8))
        own, gradient, weights = torch.zeros(readers, 6, WIDTH), torch.zeros_like(start), plain.stacked("table")
        for n in range(readers):
            there = rows[n].unique()
            assert torch.equal(unique.rows[n, : unique.counts[n]].long(), there)
            torch.testing.assert_close(vectors[n, : len(there), :WIDTH], weights[n, there], rtol=2e-6, atol=1e-6)
            gradient[n, there] = own[n, : len(there)] = torch.randn(len(there), WIDTH) * 0.1 ** (step % 5)
        steps += 1
        deferred.update_rows(own, scale, steps[:, 0], unique)
        plain.step({"table": gradient / scale[:, None, None]})
    deferred.synchronize(steps[:, 0])
    assert (deferred.row_steps == 200).all()
    if deferred.average is not None:
        torch.testing.assert_close(deferred.average, plain.averages["table"], rtol=2e-6, atol=1e-6)
    for n, weights in enumerate(plain.weights["table"]):
        torch.testing.assert_close(deferred.weights[n], weights.detach(), rtol=2e-6, atol=1e-6)
        state = plain.optimizers[n].state[weights]
        torch.testing.assert_close(deferred.first[n], state["exp_avg"], rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(deferred.second[n], state["exp_avg_sq"], rtol=1e-4, atol=1e-9)
    assert torch.equal(deferred.weights[:, 0], start[:, 0])


def test_a_second_moment_fades_however_often_rows_are_synchronized() -> None:
    """Also when the first has faded to nothing long ago."""
    triton = pytest.importorskip("asreader.ops.row_adam.triton")
    with DEVICE:
        start, zeros, rates = torch.ones(1, 2, 4), torch.zeros(1, 2, 4), torch.tensor([0.01])
        deferred = triton.make_tables(start.clone(), zeros.clone(), zeros + 0.5, rates, torch.zeros(1))
        for step in (3, 700, 1500):
            deferred.synchronize(torch.full((1,), float(step)))
    torch.testing.assert_close(deferred.second, zeros + 0.5 * 0.999**1500, rtol=1e-4, atol=0.0)
    assert torch.equal(deferred.weights, start)


def test_other_parameters_step_as_adam_does() -> None:
    """In twice the precision: its corrections of the first steps are small differences of numbers near 1."""
    triton = pytest.importorskip("asreader.ops.row_adam.triton")
    torch.manual_seed(2)
    with DEVICE:
        rates, scale, start = torch.tensor([0.01, 0.002]), torch.tensor([1.0, 2.5]), torch.randn(2, 7, 300) / 1000
        plain = [own.double().requires_grad_() for own in start]
        optimizers = [torch.optim.Adam([own], rate.item()) for own, rate in zip(plain, rates, strict=True)]
        steps, first, second = torch.zeros(2, 3), torch.zeros_like(start), torch.zeros_like(start)
        deferred = triton.make_tables(start.clone(), first.clone(), second.clone(), rates, steps[:, 0])
        ready = torch.zeros(2, 7, 308)
        for _ in range(5):
            gradient = torch.randn_like(start)
            steps += 1
            update = triton.DenseUpdate(start, first, second, None, gradient)
            deferred.update_dense(update, scale, steps[:, 0], ready)
            assert torch.equal(ready[..., :300], start) and not ready[..., 300:].any()
            for n, optimizer in enumerate(optimizers):
                plain[n].grad = (gradient[n] / scale[n]).double()
                optimizer.step()
    torch.testing.assert_close(start.double(), torch.stack(plain).detach(), rtol=0.0, atol=2e-8)


def test_a_reader_whose_divisor_is_zero_takes_no_step_and_its_biases_are_made_ready_all_the_same() -> None:
    triton = pytest.importorskip("asreader.ops.row_adam.triton")
    from asreader.ops.gru.kernel_weights import EXTRA_COLUMNS, KernelWeights

    torch.manual_seed(3)
    hidden = 4
    with DEVICE:
        table, steps, divisors = torch.zeros(2, 3, 4), torch.ones(2), torch.tensor([2.0, 0.0])
        deferred = triton.make_tables(table, table.clone(), table.clone(), torch.tensor([0.01, 0.01]), steps - 1)
        start = [torch.randn(2, 2, 3 * hidden) for _ in range(2)]
        gradients = [torch.randn(2, 2, 3 * hidden) for _ in range(2)]

        def make_updates() -> list[triton.DenseUpdate]:
            return [
                triton.DenseUpdate(own.clone(), torch.zeros_like(own), torch.zeros_like(own), None, gradient)
                for own, gradient in zip(start, gradients, strict=True)
            ]

        ready = KernelWeights.allocate(torch.zeros(2, 2, 12, 5), torch.zeros(2, 2, 12, hidden), torch.float32)
        expected, found = make_updates(), make_updates()
        deferred.update_biases(*found, divisors, steps, ready)
        for update in expected:
            deferred.update_dense(update, divisors, steps, torch.empty_like(update.weights))
    for one, other, before in zip(found, expected, start, strict=True):
        torch.testing.assert_close(one.weights, other.weights, rtol=0.0, atol=0.0)
        assert torch.equal(one.weights[1], before[1]) and not torch.equal(one.weights[0], before[0])
    of_inputs, of_products = combine_biases(found[0].weights, found[1].weights)
    torch.testing.assert_close(ready.inputs[..., -EXTRA_COLUMNS], of_inputs.flatten(1))
    torch.testing.assert_close(ready.biases, of_products.flatten(0, 1))
    assert not ready.inputs[..., :5].any() and not ready.inputs[..., 6:].any()
