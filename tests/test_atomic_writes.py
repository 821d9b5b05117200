"""Every file that the product writes takes its name once it is whole, but for those reviewed below."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

# Calls that write a file under the name that they are given; in the source, that must be the `temporary` of
# schedlab.config.files.
WRITES = re.compile(
    r"(?P<path>[\w.()/ ]*)\.(write_text|write_bytes|open)\((?!\))|"
    r"\.(to_csv|to_parquet|to_json|savefig)\((?!index=|orient=|sys\.stdout)\w|"
    r"\b(np\.savez?\w*|pq\.write_table|torch\.save|json\.dump|h5py\.File|ZipFile)\(|\bopen\("
)
FOR_WRITING = re.compile(r"""write_(text|bytes)|to_\w+\(|savefig|save|write_table|json\.dump|["'][wax]b?\+?["']""")
STREAM = "a row for each case that took minutes, to be seen, and kept, before the last one is there"
SCRATCH = "a folder that is made for one measurement"
TABLE = "the table of one's own measurement, at its end; git keeps the former"
REVIEWED = {
    ("src/schedlab/config/runtime/job_log.py", 'open("w", encoding'): "a job's log, which must be seen while it grows",
    ("src/schedlab/config/files.py", 'path.open("ab")'): "a lock, never written",
    ("src/schedlab/config/runtime/run_lock.py", 'file.open("ab")'): "a lock, never written",
    (
        "src/schedlab/stages/learn.py",
        'file.open("ab"',
    ): "a learning curve of JSON lines; one that is not whole is dropped",
    ("src/schedlab/studies/adaptation/simulator/store.py", '.lock").open("w")'): "a lock, never written",
    (
        "src/schedlab/studies/adaptation/data/datasets.py",
        "np.savez(file",
    ): "into the temporary file that the line before opened",
    ("src/schedlab/studies/adaptation/network/files.py", "(path, "): "called by `save` alone, with the temporary path",
    (
        "src/schedlab/studies/adaptation/compat/import_toml.py",
        "write_text(text",
    ): "a scratch copy that is deleted at once",
    (
        "src/schedlab/studies/hetero/prepare.py",
        "path.write_bytes(found[member])",
    ): "unpacked into a scratch folder that is deleted at once",
    ("src/schedlab/studies/adaptation/grow/files.py", "torch.save(document, buffer)"): "into memory",
    ("docs/generate/tutorials.py", "figure.savefig(file, "): "into memory",
    ("src/schedlab/studies/adaptation/grow/files.py", 'remedy = "write'): "a sentence",
    ("src/schedlab/studies/hetero/hdeeprm/agent_models.py", "buffer)"): "into memory",
    (
        "src/schedlab/studies/cloud/live/run.py",
        "spec.write_text(",
    ): "the folder of one run of a script, made for it and read when it is over",
    (
        "src/schedlab/studies/cloud/live/run.py",
        "ended.output",
    ): "the folder of one run of a script, made for it and read when it is over",
    (
        "src/schedlab/studies/cloud/live/run.py",
        '"epochs.csv"',
    ): "the folder of one run of a script, made for it and read when it is over",
    (
        "src/schedlab/config/runtime/download.py",
        'partial.open("ab"',
    ): "a download, in a folder of those that are not whole",
    (
        "src/schedlab/config/runtime/download.py",
        'place.open("wb") as out',
    ): "a folder that takes its name once the whole archive is unpacked",
    ("src/schedlab/batsim/backends/backend.py", 'partial.open("w"'): "takes its name at the end of the conversation",
    (
        "src/schedlab/batsim/backends/real_batsim.py",
        '"log").open("wb")',
    ): "the log of another program, in a scratch folder",
    ("benchmarks/processes_threads.py", '.open("w"'): STREAM,
    ("benchmarks/ramp_*.py", ".to_csv("): TABLE,
    ("docs/generate/*.py", ".to_csv("): TABLE,
    ("benchmarks/dry_run.py", ".write_text("): SCRATCH,
    ("benchmarks/many_scenarios.py", "(folder / "): SCRATCH,
    ("benchmarks/scale.py", '(folder / "part.yaml")'): SCRATCH,
    ("benchmarks/scale.py", 'path.open("w")'): SCRATCH,
    ("benchmarks/simulator.py", "path.write_text("): SCRATCH,
}


def direct_writes(root: Path) -> list[tuple[str, str]]:
    """(file, line) of every call in the product and its benchmarks that writes to another name than a temporary one."""
    found = []
    folders = ("src/schedlab", "workflow", "benchmarks", "docs/generate")
    files = [path for folder in folders for path in (root / folder).rglob("*")]
    for path in sorted(path for path in files if path.suffix in (".py", ".smk")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if (
                WRITES.search(line)
                and FOR_WRITING.search(line)
                and "temporary" not in line
                and "os.devnull" not in line
            ):
                found.append((path.relative_to(root).as_posix(), line.strip()))
    return found


def is_reviewed(file: str, line: str) -> bool:
    return any(fnmatch(file, known) and part in line for known, part in REVIEWED)


def test_nothing_is_written_in_place_but_what_was_reviewed(repository: Path) -> None:
    found = direct_writes(repository)
    assert [(file, line) for file, line in found if not is_reviewed(file, line)] == []
    unused = [
        known for known in REVIEWED if not any(fnmatch(file, known[0]) and known[1] in line for file, line in found)
    ]
    assert not unused, "reviewed, but no longer there"


def test_the_search_sees_what_it_looks_for(tmp_path: Path) -> None:
    lines = (
        'Path(name).write_text("a")',
        "file.write_bytes(data)",
        'open(name, "w")',
        'path.open("ab")',
        'table.to_csv(folder / "a.csv")',
        "torch.save(state, path)",
        'zipfile.ZipFile(path, "w")',
    )
    allowed = (
        "temporary.write_bytes(data)",
        'path.open("rb")',
        "write_text(path, text)",
        "path.read_text()",
        "table.to_csv(index=False)",
    )
    sources = ("benchmarks/a.py", "src/schedlab/a.py", "workflow/a.smk")
    for name in sources:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("\n".join((*lines, *allowed)))
    assert direct_writes(tmp_path) == [(name, line) for name in sources for line in lines]
