"""What a wheel has beside the package, below share/schedlab: the workflow, its configuration and its resources."""

from pathlib import Path

from setuptools import setup

FILES = ("Snakefile", "conf/**/*", "profiles/**/*", "resources/**/*", "workflow/**/*")
LEFT_OUT = (("resources", "data"), ("conf", "claims"))  # data of others; values that are compared with docs/results


def data_files() -> list[tuple[str, list[str]]]:
    """Return (folder of the installation, files of the checkout)."""
    found: dict[str, list[str]] = {}
    for path in sorted(path for pattern in FILES for path in Path().glob(pattern) if path.is_file()):
        if "__pycache__" not in path.parts and path.parts[:2] not in LEFT_OUT:
            found.setdefault(f"share/schedlab/{path.parent}", []).append(str(path))
    return list(found.items())


setup(data_files=data_files())
