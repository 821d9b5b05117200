"""Content hashes: of configuration values (canonical JSON) and of files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces, NaN and infinities refused."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(value: Any, length: int = 16) -> str:
    """Return the first `length` hexadecimal digits of the SHA-256 of a JSON value's canonical text."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def file_hash(path: Path | str) -> str:
    """Return the hexadecimal SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
