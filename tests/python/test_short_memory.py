"""Scripts where memory is short: smaller micro-batches, or a refusal that says what is missing. Never a killed process."""

import resource
import sys

import pytest
import torch

import limited_memory
from conftest import COMMAND
from motley import _core, _errors
from motley._machines import _devices

CASES = [(3, 2), pytest.param(9, 3, marks=pytest.mark.nightly)]  # how many, and the seed; each starts from nothing


@pytest.fixture
def control_groups():
    if reason := limited_memory.why_not():
        pytest.skip(f"no memory limits: {reason}")


@pytest.mark.alone  # what the machine can spare must not change meanwhile
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is refused")
def test_what_the_machine_cannot_spare_is_refused_by_name():
    _, _, budget, _ = _core.process_memory(1)
    limit = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(_errors.Error, match="memory of cpu is too small") as refused, _devices.limited(torch.device("cpu")):
        torch.empty(budget, dtype=torch.uint8)
    assert refused.value.code == "memory" and "smaller model" in refused.value.hint
    assert resource.getrlimit(resource.RLIMIT_DATA) == limit
    with pytest.raises(ZeroDivisionError), _devices.limited(torch.device("cpu")):
        1 / 0


def test_a_model_that_cannot_be_made_is_out_of_memory():
    def make(device, threads):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    with pytest.raises(_errors.Error, match="tried to allocate 1 bytes") as refused:
        _devices.within_memory(make)("cuda:0", 1)
    assert refused.value.code == "memory"


@pytest.mark.parametrize("count, seed", CASES)
def test_random_scripts_train_or_are_refused(control_groups, tmp_path, count, seed):
    results = list(limited_memory.run_cases(str(COMMAND), tmp_path, count, seed))
    died = [result for result in results if result["verdict"] == "died"]
    assert not died, died
    assert sum(result["verdict"] == "trained" for result in results) > count / 4, results
