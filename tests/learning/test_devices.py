from __future__ import annotations

import logging

import pytest

from schedlab.config.errors import UserError
from schedlab.learning.devices import described, device_name, device_or_processor, find_device, wait_for
from schedlab.stages import learn


@pytest.mark.parametrize("name", ["toaster", "cuda:99", "mps"])
def test_a_device_that_is_not_there_is_the_users_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UserError, match="--device"):
        find_device(name)
    with pytest.raises(UserError, match=r"training\.device"):
        find_device(name, "training.device")


def test_the_processor_is_a_device_with_a_name() -> None:
    pytest.importorskip("torch")
    device = find_device("cpu")
    wait_for(device)
    assert device.type == "cpu"
    assert device_name(device)


def test_the_processor_stands_in_for_a_device_that_is_not_there_and_the_log_says_so(monkeypatch, caplog) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with caplog.at_level(logging.WARNING):
        assert device_or_processor("cpu").type == "cpu" and not caplog.records
        assert device_or_processor("cuda").type == "cpu"
    assert ["CUDA" in record.getMessage() for record in caplog.records] == [True]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert device_or_processor("cuda").type == "cuda"


def test_provenance_of_learning_tells_the_device_where_another_than_the_processor_was_asked_for(
    monkeypatch, caplog
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert learn._device("cpu") == {}
    for asked in ("auto", "cuda"):
        assert learn._device(asked) == {"device": described(asked, torch.device("cpu"))}
    assert not caplog.records  # the learner has told it


@pytest.mark.parametrize(("there", "taken"), [(False, "cpu"), (True, "cuda")])
def test_auto_is_cuda_where_the_machine_has_it(monkeypatch: pytest.MonkeyPatch, there: bool, taken: str) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(there))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"a GPU: {device}")
    device = find_device("auto")
    assert device.type == taken
    for metal, expected in ((False, taken), (True, taken if there else "mps")):
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
        assert find_device("auto", metal=metal).type == expected
    told = described("auto", device)
    assert (told["asked"], told["used"]) == ("auto", taken) and told["name"] == device_name(device)
