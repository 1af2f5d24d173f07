"""Which implementation serves an operation, and what is said about those that do not."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
import torch

from asreader import ops
from asreader.errors import InputError
from asreader.ops import IMPLEMENTATIONS, Workload

CPU = Workload(torch.device("cpu"), torch.float32, 64)
FOLDER = Path(ops.__file__).parent


@pytest.mark.parametrize("operation", IMPLEMENTATIONS)
def test_every_operation_has_a_reference_that_supports_everything(operation: str) -> None:
    assert IMPLEMENTATIONS[operation][-1] == "reference"
    reference = import_module(f"asreader.ops.{operation}.reference")
    for device in ("cpu", "cuda", "meta"):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            assert reference.supports(Workload(torch.device(device), dtype, 100)) is None


def test_the_order_names_every_implementation_there_is() -> None:
    names = {"cuda", "triton", "cpu", "reference"}
    for folder in FOLDER.iterdir():
        found = {path.stem for path in folder.glob("*.py")} & names
        if found:
            assert found == {*IMPLEMENTATIONS[folder.name]}


@pytest.mark.parametrize("operation", IMPLEMENTATIONS)
def test_a_cpu_gets_the_first_that_needs_no_gpu(operation: str) -> None:
    choice = ops.choose(operation, CPU)
    expected = next(name for name in IMPLEMENTATIONS[operation] if name not in ("cuda", "triton"))
    assert (choice.operation, choice.implementation) == (operation, expected)
    assert ops.select(operation, CPU).__name__ == f"asreader.ops.{operation}.{expected}"
    assert [*choice.rejected] == [*IMPLEMENTATIONS[operation][: IMPLEMENTATIONS[operation].index(expected)]]
    assert {*choice.rejected.values()} <= {"runs on a GPU only"}


def test_reasons_say_why_not_a_faster_one() -> None:
    choice = ops.choose("gru", Workload(torch.device("cpu"), torch.bfloat16, 64))
    assert choice.implementation == "reference"
    assert choice.rejected == {
        "cuda": "runs on a GPU only",
        "triton": "runs on a GPU only",
        "cpu": "does not compute in torch.bfloat16",
    }


def test_reasons_of_a_gpu_are_about_the_workload() -> None:
    choice = ops.choose("gru", Workload(torch.device("cuda"), torch.float16, 100))
    assert choice.implementation == "reference"
    assert choice.rejected["cuda"] == "does not compute in torch.float16"
    assert choice.rejected["cpu"] == "runs on a CPU only"


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(operation: str, name: str) -> None:
        raise ImportError("no", name="triton")

    monkeypatch.setattr(ops, "_load", fail)
    assert ops._reason_against("gru", "triton", CPU) == "triton is not installed"


def test_using_overrides_for_the_named_operations_and_restores() -> None:
    with ops.using("reference", "gru", "segment_sum"):
        assert ops.choose("gru", CPU).implementation == "reference"
        assert ops.choose("segment_sum", CPU).implementation == "reference"
        assert ops.choose("pointer_sum", CPU).implementation == "cpu"
        with ops.using("cpu", "gru"):
            assert ops.choose("gru", CPU).implementation == "cpu"
            assert ops.choose("segment_sum", CPU).implementation == "reference"
        assert ops.choose("gru", CPU).implementation == "reference"
    assert ops.choose("gru", CPU).implementation == "cpu"


def test_using_names_no_operation_and_means_all() -> None:
    with ops.using("reference"):
        assert {ops.choose(name, CPU).implementation for name in IMPLEMENTATIONS} == {"reference"}


def test_using_restores_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), ops.using("reference", "gru"):
        raise ZeroDivisionError
    assert ops.choose("gru", CPU).implementation == "cpu"


def test_using_what_does_not_support_a_workload_leaves_the_order() -> None:
    with ops.using("cpu"):
        assert ops.choose("gru", Workload(torch.device("cpu"), torch.bfloat16, 64)).implementation == "reference"
        assert ops.choose("row_adam", CPU).implementation == "reference"  # which has none for a CPU


def test_triton_runs_on_a_cpu_only_where_it_is_asked_for() -> None:
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        pytest.skip("its interpreter is for a CPU")
    assert ops.choose("gru", CPU).implementation == "cpu"
    with ops.using("triton"):
        assert ops.choose("gru", CPU).implementation == "triton"


def test_an_unknown_operation_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no operation 'lstm'; there are gru, "), ops.using("cpu", "lstm"):
        pass
