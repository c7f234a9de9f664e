import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keeps the compiled models of these tests in a folder of their own; kernels still come from the user's cache."""
    return tmp_path_factory.mktemp("models")
