import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _gpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("this process sees no GPU")
