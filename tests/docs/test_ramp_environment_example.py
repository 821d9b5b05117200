"""The example of the environment in docs/ramp.md works as it is printed."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_example_of_the_environment_works():
    repository = Path(__file__).resolve().parents[2]
    examples = re.findall(r"```python\n(.*?)```", (repository / "docs/ramp.md").read_text(), flags=re.S)
    (example,) = [text for text in examples if "Ramp-v0" in text]
    names: dict = {}
    exec(compile(example, "docs/ramp.md", "exec"), names)
    assert names["reward"] in (-1.0, 1.0)
    assert not names["ended"]
