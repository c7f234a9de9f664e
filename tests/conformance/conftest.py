import pytest
import suite
from isolated import IsolatedRunner
from prepare import MODELS_A_RUN, Compiled


@pytest.fixture(scope="session")
def batches(request) -> dict[str, dict]:
    """The batch of cases that is compiled with each selected one. All workers of the run form the same batches."""
    folders = suite.cases()
    selected = [item.callspec.params["case"] for item in request.session.items if "batches" in getattr(item, "fixturenames", ())]
    result = {}
    for start in range(0, len(selected), MODELS_A_RUN):
        names = selected[start : start + MODELS_A_RUN]
        result |= dict.fromkeys(names, {name: folders[name] for name in names})
    return result


@pytest.fixture(scope="session")
def target(request) -> str:
    return request.config.getoption("target")


@pytest.fixture(scope="session")
def compiled(target) -> Compiled:
    return Compiled(target)


@pytest.fixture(scope="session")
def runner():
    runner = IsolatedRunner()
    yield runner
    runner.stop()
