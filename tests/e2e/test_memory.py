"""Training where memory is short: smaller micro-batches, or a refusal that says what is missing. Never a killed process."""

import pytest

import limited_memory

# bench/memory.py runs a hundred; these fit a test.
CASES, SEED = 12, 4


@pytest.fixture(scope="module", autouse=True)
def limits():
    if reason := limited_memory.why_not():
        pytest.skip(f"no memory limits: {reason}")


def test_random_cases_train_or_are_refused(motley_path, tmp_path):
    results = list(limited_memory.run_cases(motley_path, tmp_path, CASES, SEED))
    died = [result for result in results if result["verdict"] == "died"]
    assert not died, died
    assert sum(result["verdict"] == "trained" for result in results) > CASES / 4, results
