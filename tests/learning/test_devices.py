from __future__ import annotations

import pytest

from schedlab.config.errors import UserError
from schedlab.learning.devices import device_name, find_device, wait_for


@pytest.mark.parametrize("name", ["toaster", "cuda:99", "mps"])
def test_a_device_that_is_not_there_is_the_users_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UserError, match="--device"):
        find_device(name)


def test_the_processor_is_a_device_with_a_name() -> None:
    pytest.importorskip("torch")
    device = find_device("cpu")
    wait_for(device)
    assert device.type == "cpu"
    assert device_name(device)
