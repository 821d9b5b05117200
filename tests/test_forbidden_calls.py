"""No call in the source that runs foreign data as code, opens a shell or listens to the network, but for those reviewed below."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

# What is looked for, and why. The patterns see lines of code; comments and strings count too, as they are few.
FORBIDDEN = {
    r"\bc?[Pp]ickle\.(load|loads|Unpickler)\b|\bimport_module\(.pickle|\b(dill|cloudpickle|shelve|marshal)\b": "unpickles",
    r"\bjoblib\.load\b|\b(pd|pandas)\.read_pickle\b|\.unpickle\(": "unpickles",
    r"\btorch\.load\((?![^#]*weights_only=True)": "torch.load without weights_only=True",
    r"\b(np|numpy)\.load\((?![^#]*allow_pickle=False)|allow_pickle=True": "numpy.load that does not refuse pickles",
    r"(?<![\w.])(eval|exec|compile|__import__)\(": "runs text as code",
    r"\byaml\.(unsafe_load|full_load|load_all|load)\((?![^#]*Safe)|\b(Full|Unsafe)Loader\b": "YAML without a safe loader",
    r"\bos\.(system|popen|spawn\w*|exec\w*)\(|\bshell=True|\bgetoutput\(|\bpty\.spawn\(": "a shell",
    r"\b(from|import) xml\.(?!etree\.ElementTree import Element, ParseError|sax\.saxutils import quoteattr)": "XML that is not defused",
    r"\blxml\b": "XML that is not defused",
    r"\bimport socket\b|\bsocketserver\b|\bhttp\.server\b|\burllib\b|\brequests\b\.|\bhttpx?\.": "the network",
    r"tcp://(?!(127\.0\.0\.1|localhost)\b)": "the network beyond this machine",
    r"\bmultiprocessing\.connection\b|\bxmlrpc\b|\btelnetlib\b|\bftplib\b": "the network",
    r"\.extractall\(|\bshutil\.unpack_archive\b": "unpacks names that an archive chooses",
    r"\btempfile\.mktemp\(": "a name that somebody else can take first",
    r"os\.environ\.copy\(\)|dict\(os\.environ\)": "hands on or stores the whole environment, secrets included",
}
# (file, what the line holds): why it is no danger.
REVIEWED = {
    ("src/schedlab/studies/adaptation/readers.py", "class _Restricted(pickle.Unpickler):"): "CIFAR batches; calls and imports nothing",
    ("src/schedlab/batsim/json_socket.py", "tcp://HOST:PORT, or ipc://PATH"): "a docstring",
    ("src/schedlab/batsim/json_socket.py", 're.fullmatch(r"tcp://('): "the check that refuses what is not loopback, but for --anywhere",
    ("src/schedlab/learning/prioritised_dqn_actors.py", "import Connection"): "the type of a pipe between a process and its own children",
    (
        "src/schedlab/studies/cloud/live_child.py",
        'return compile(with_settings(tree, self.values), self.path, "exec"',
    ): "the user's own script",
}


def findings(root: Path, files: list[str]) -> list[tuple[str, int, str, str]]:
    """(file, line, text, why) of everything forbidden in files of a folder."""
    found = []
    for name in files:
        for number, line in enumerate((root / name).read_text(encoding="utf-8").splitlines(), 1):
            found += [(name, number, line.strip(), why) for pattern, why in FORBIDDEN.items() if re.search(pattern, line)]
    return found


def source_files(repository: Path) -> list[str]:
    """Python and Snakemake files of the product: what a user's data or command can reach."""
    folders = ("src/schedlab", "workflow", "benchmarks", "resources")
    found = [path for folder in folders for path in (repository / folder).rglob("*") if path.suffix in (".py", ".smk")]
    return ["Snakefile", *sorted(path.relative_to(repository).as_posix() for path in found)]


def test_nothing_forbidden_is_called_but_what_was_reviewed(repository: Path) -> None:
    files = source_files(repository)
    assert len(files) > 300, "the search must see the source"
    unknown = [
        f"{name}:{number}: {why}: {text}"
        for name, number, text, why in findings(repository, files)
        if not any(name == file and part in text for file, part in REVIEWED)
    ]
    assert not unknown, "\n".join(unknown)


def test_what_was_reviewed_is_still_there(repository: Path) -> None:
    for name, part in REVIEWED:
        assert part in (repository / name).read_text(), f"{name} holds no {part} any more: take it off the list"


BAD = [
    "values = pickle.load(file)",
    "model = joblib.load(path)",
    "torch.load(path, map_location='cpu')",
    "np.load(path)",
    "np.load(path, allow_pickle=True)",
    "eval(text)",
    "exec(code)",
    "yaml.load(text)",
    "yaml.load(text, Loader=yaml.FullLoader)",
    "os.system('ls')",
    "subprocess.run(command, shell=True)",
    "from xml.etree import ElementTree",
    "import xml.dom.minidom",
    "import socket",
    "socket.bind('tcp://0.0.0.0:28000')",
    "socket.bind('tcp://*:28000')",
    "archive.extractall(folder)",
    "environment = dict(os.environ)",
]
GOOD = [
    "torch.load(path, map_location='cpu', weights_only=True)",
    "with np.load(path, allow_pickle=False) as archive:",
    "yaml.load(text, Loader=yaml.CSafeLoader)",
    "model.eval()",
    "pattern = re.compile('a')",
    "from defusedxml import ElementTree",
    "from xml.etree.ElementTree import Element, ParseError",
    "socket = JsonSocket('REP', 'tcp://127.0.0.1:*', bind=True)",
    "default='tcp://localhost:28000'",
    "except pickle.UnpicklingError:",
]


@pytest.mark.parametrize("line", BAD)
def test_the_search_finds(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text(f"first\n    {line}\n")
    assert [(name, number) for name, number, _, _ in findings(tmp_path, ["a.py"])][:1] == [("a.py", 2)]


@pytest.mark.parametrize("line", GOOD)
def test_the_search_leaves_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text(line)
    assert findings(tmp_path, ["a.py"]) == []
