"""No call in the source that runs foreign data as code, opens a shell or listens to the network, but for those reviewed
below.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from forbidden_calls import findings

# (file, what the line holds): why it is no danger.
REVIEWED = {
    (
        "src/schedlab/studies/ramp/user_classes.py",
        "importlib.import_module(module)",
    ): "the user's own class, which a scenario names by _target_",
    (
        "src/schedlab/batsim/backends/json_socket.py",
        're.fullmatch(r"tcp://(',
    ): "the check that refuses what is not loopback, but for --anywhere",
    (
        "src/schedlab/config/plugins.py",
        "spec.loader.exec_module(module)",
    ): "the user's own classes, which a YAML file or -a names",
    ("src/schedlab/cli/data.py", "urlsplit"): "takes an address apart",
    ("src/schedlab/config/data_paths.py", "url"): "takes addresses apart and puts them together",
    ("src/schedlab/config/runtime/download.py", "urlsplit("): "takes an address apart",
    (
        "src/schedlab/config/runtime/download.py",
        "urllib",
    ): "what `schedlab data get` asks for, over HTTP alone, compared with the catalogue's hash",
    ("src/schedlab/config/runtime/download.py", "http.client"): "the errors of the same",
    (
        "src/schedlab/config/runtime/fork_server.py",
        "socket",
    ): "a file of the run's own folder as address, which only its owner may open",
    ("src/schedlab/config/runtime/fork_server.py", "runpy"): "the script of a job, which Snakemake wrote for this run",
    ("src/schedlab/config/runtime/fork_server.py", "importlib.import_module(name)"): "packages of a list in the file",
    (
        "src/schedlab/platforms/batsim_xml.py",
        "import Element, ParseError, TreeBuilder",
    ): "builds the tree of what defusedxml's parser reads",
    ("src/schedlab/platforms/batsim_xml.py", "class _Lines(TreeBuilder)"): "the same",
    (
        "docs/generate/claim_tables.py",
        "os.execv(sys.executable, [sys.executable, *sys.argv])",
    ): "the program itself again, with the instructions pinned; no shell",
    (
        "docs/generate/batch_untrained_history.py",
        "os.execv(sys.executable, [sys.executable, *sys.argv])",
    ): "the same",
    ("src/schedlab/studies/cloud/live/child.py", 'self.values), self.path, "exec"'): "the user's own script",
    ("src/schedlab/studies/cloud/live/child.py", ".exec_module(module)"): "the user's own script",
    (
        "src/schedlab/studies/cloud/live/child.py",
        "os.execvp(words[0], words)",
    ): "the user's command, no shell",
    (
        "src/schedlab/studies/cloud/live/child.py",
        'os.execvp(words[0], [*words, sys.executable, __file__, spec_path, "inside"])',
    ): "the program itself again, in a user namespace without rights; no shell",
    ("docs/generate/tutorials.py", 'exec(compile(cell.text, f"cell'): "the cells of a tutorial of the repository",
    (
        "src/schedlab/stages/studies.py",
        'importlib.import_module(module), "STUDY"',
    ): "the package of a study, which conf/study names",
    (
        "src/schedlab/config/plugins.py",
        "getattr(importlib.import_module(module), attribute)",
    ): "a learner, rule, drawing or command of a study, which the study's door names",
    (
        "src/schedlab/batsim/scheduler_loading.py",
        'import_module(f"schedulers.{name}")',
    ): "a scheduler that the installed PyBatsim brings",
}


def source_files(repository: Path) -> list[str]:
    """Python and Snakemake files of the product, its benchmarks and pages: what a user's data or command can reach."""
    folders = ("src/schedlab", "workflow", "benchmarks", "resources", "docs")
    found = [path for folder in folders for path in (repository / folder).rglob("*") if path.suffix in (".py", ".smk")]
    return ["Snakefile", *sorted(path.relative_to(repository).as_posix() for path in found)]


def test_nothing_forbidden_is_called_but_what_was_reviewed(repository: Path) -> None:
    files = source_files(repository)
    assert "src/schedlab/environments.py" in files, "the search must see the source"
    unknown = [
        f"{name}:{number}: {why}: {text}"
        for name, number, text, why in findings(repository, files)
        if not any(name == file and part in text for file, part in REVIEWED)
    ]
    assert not unknown, "\n".join(unknown)


def test_what_was_reviewed_is_still_there(repository: Path) -> None:
    for name, part in REVIEWED:
        assert part in (repository / name).read_text(), f"{name} holds no {part} any more: take it off the list"


BAD = [  # each last line is to be found; names are those that the lines before import
    "import pickle; values = pickle.load(file)",
    "from pickle import loads",
    "import pickle as p; p.loads(data)",
    "import pickle; read = getattr(pickle, 'loads')",
    "from pickle import *",
    "import importlib; importlib.import_module('pickle').loads",
    "import importlib; importlib.import_module(name)",
    "import cloudpickle",
    "import joblib",
    "import pandas as pd; pd.read_pickle(path)",
    "import torch; torch.load(path, map_location='cpu')",
    "import torch; torch.load(path, weights_only=False)",
    "import torch; read = torch.load",
    "from torch import load",
    "import numpy as np; np.load(path)",
    "import numpy as np; np.load(path, allow_pickle=True)",
    "numpy.lib.format.read_array(file, allow_pickle=chosen)",
    "eval(text)",
    "exec(code)",
    "run = exec",
    "__import__(name)",
    "import runpy",
    "spec.loader.exec_module(module)",
    "SourceFileLoader(name, path).exec_module(module)",
    "import yaml; yaml.load(text)",
    "import yaml; yaml.load(text, Loader=yaml.FullLoader)",
    "import yaml; yaml.load(text, yaml.UnsafeLoader)",
    "from yaml import load",
    "from yaml import unsafe_load",
    "import os; os.system('ls')",
    "from os import system",
    "from os import popen as ask",
    "import subprocess; subprocess.run(command, shell=True)",
    "import subprocess; subprocess.run(command, shell = True)",
    "import subprocess; subprocess.run(command, shell=chosen)",
    "import subprocess; subprocess.getstatusoutput('ls')",
    "from subprocess import getoutput",
    "import asyncio; asyncio.create_subprocess_shell('ls')",
    "import pty",
    "from xml.etree import ElementTree; ElementTree.parse(path)",
    "from xml.etree.ElementTree import parse",
    "import xml.dom.minidom",
    "import lxml.etree",
    "import socket",
    "import requests",
    "from urllib.request import urlopen",
    "import http.server",
    "import multiprocessing.connection as m; m.Listener(address)",
    "socket.bind('tcp://0.0.0.0:28000')",
    "socket.bind('tcp://*:28000')",
    "socket.bind(f'tcp://{host}:28000')",
    "socket.bind('tcp://{}:1'.format(host))",
    "archive.extractall(folder)",
    "import shutil; shutil.unpack_archive(path)",
    "import tempfile; tempfile.mktemp()",
    "import os; environment = dict(os.environ)",
    "from os import environ; environment = environ.copy()",
]
GOOD = [
    "import torch; torch.load(path, map_location='cpu', weights_only=True)",
    "import numpy as np; np.load(path, allow_pickle=False)",
    "import yaml; yaml.load(text, Loader=yaml.CSafeLoader)",
    "model.eval()",
    "import re; pattern = re.compile('a')",
    "from defusedxml import ElementTree; ElementTree.parse(path)",
    "from xml.etree.ElementTree import Element, ParseError",
    "socket = JsonSocket('REP', 'tcp://127.0.0.1:*', bind=True); requests.append(1); socket.send()",
    "default='tcp://localhost:28000'",
    "'endpoints: tcp://HOST:PORT'  # a docstring",
    "import pickle; damage = (pickle.UnpicklingError,)",
    "from multiprocessing.connection import Connection",
    "import subprocess; subprocess.run(['ls'], shell=False)",
    "import os; os.environ.get('HOME'); os.environ['A'] = 'b'",
    "import importlib; importlib.import_module('json')",
]


@pytest.mark.parametrize("line", BAD)
def test_the_search_finds(tmp_path: Path, line: str) -> None:
    *imports, last = line.split("; ")
    (tmp_path / "a.py").write_text("\n".join(["def work():", *(f"    {one}" for one in [*imports, last])]))
    assert {number for _, number, _, _ in findings(tmp_path, ["a.py"])} == {len(imports) + 2}


@pytest.mark.parametrize("line", GOOD)
def test_the_search_leaves_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text(line)
    assert findings(tmp_path, ["a.py"]) == []


def test_the_search_reads_workflow_files(tmp_path: Path) -> None:
    lines = (
        *(
            "def command(wildcards):",
            '    return os.popen("ls").read()',
            "",
            "rule one:",
            '    output: "a"',
            '    shell: "touch {output}"',
        ),
        *(
            "",
            "rule two:",
            '    output: "b"',
            "    run:",
            '        subprocess.run("touch b", shell=True)',
            '        exec("import this")',
        ),
    )
    (tmp_path / "a.smk").write_text("\n".join(lines) + "\n")
    assert [lines[number - 1].strip() for _, number, _, _ in findings(tmp_path, ["a.smk"])] == [
        lines[number].strip() for number in (1, 5, 10, 11)
    ]
