import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Compiled models of these tests; kernels still come from the user's cache."""
    return tmp_path_factory.mktemp("models")
