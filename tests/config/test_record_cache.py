"""Tests of schedlab.config.runtime.record_cache."""

from __future__ import annotations

from pathlib import Path

from schedlab.config.runtime import record_cache
from schedlab.config.runtime.record_cache import RecordCache


def test_what_was_made_survives_a_kill_at_most_a_second_later(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(record_cache, "SECONDS", -1.0)
    cache = RecordCache(tmp_path / "records.json")
    for key in "ab":
        cache.get(key, lambda key=key: key.upper())
    killed = RecordCache(tmp_path / "records.json")
    assert killed.known == {"a": "A", "b": "B"}
    killed.get("b", lambda: "not made again")
    killed.save(prune=True)
    assert RecordCache(tmp_path / "records.json").known == {"b": "B"}


def test_a_broken_cache_is_no_mistake(tmp_path: Path) -> None:
    for text in ("", "[1]", "{"):
        (tmp_path / "records.json").write_text(text)
        assert RecordCache(tmp_path / "records.json").get("a", lambda: 1) == 1
