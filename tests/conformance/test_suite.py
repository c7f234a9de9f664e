"""ONNX's backend suite: every case passes or is listed in unsupported.txt."""

import pytest
import suite
import unsupported

LISTED = unsupported.listed()


@pytest.mark.parametrize("case", suite.cases())
def test_case(case, batches, compiled, runner, target):
    folder = batches[case][case]
    error = compiled.error(case, batches[case]) or runner.run(folder, compiled.folder, target)
    unsupported.note(case, error)
    if case in LISTED:
        assert error, f"{case} passes: remove it from unsupported.txt, or run update_unsupported.py beside it"
        pytest.xfail(LISTED[case])
    if error:
        pytest.fail(error, pytrace=False)


def test_list_names_cases():
    assert [case for case in LISTED if case not in suite.cases()] == []
