"""What no source may call: what runs foreign data as code, opens a shell, speaks to the network, or lets an archive
choose names.

The search goes by the syntax tree and by where a name was imported from, so that another name or another way of import
hides nothing; a workflow file is first made Python, as Snakemake does. What is only built at run time, such as a name
for `getattr`, it cannot see.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace

UNPICKLES, CODE, SHELL, NETWORK = "unpickles", "runs text or a file as code", "a shell", "the network"
XML, YAML, ARCHIVE = "XML that is not defused", "YAML without a safe loader", "unpacks names that an archive chooses"
# Modules of which nothing may be used but what is named here.
MODULES: Mapping[str, tuple[str, frozenset[str]]] = {
    "pickle": (UNPICKLES, frozenset({"UnpicklingError", "PicklingError", "dumps"})),
    **dict.fromkeys(
        ("_pickle", "cloudpickle", "dill", "joblib", "jsonpickle", "marshal", "shelve"), (UNPICKLES, frozenset())
    ),
    **dict.fromkeys(("runpy", "code", "codeop", "imp"), (CODE, frozenset())),
    **dict.fromkeys(("pty",), (SHELL, frozenset())),
    "xml": (XML, frozenset({"etree.ElementTree.Element", "etree.ElementTree.ParseError", "sax.saxutils.quoteattr"})),
    "lxml": (XML, frozenset()),
    "multiprocessing.connection": (
        NETWORK,
        frozenset({"Connection"}),
    ),  # the type of a pipe between a process and its own children
    **dict.fromkeys(
        ("socket", "socketserver", "ssl", "http", "urllib", "urllib3", "requests", "httpx", "aiohttp"),
        (NETWORK, frozenset()),
    ),
    **dict.fromkeys(
        ("ftplib", "imaplib", "poplib", "smtplib", "telnetlib", "websockets", "xmlrpc"), (NETWORK, frozenset())
    ),
}
NAMES = {  # names with the modules that they come from, as fnmatch knows them
    **dict.fromkeys(
        ("builtins.eval", "builtins.exec", "builtins.compile", "builtins.__import__", "*.exec_module"), CODE
    ),
    "importlib.import_module": "imports what somebody names",
    **dict.fromkeys(("pandas.read_pickle", "*.unpickle"), UNPICKLES),
    "torch.load": "torch.load without weights_only=True",
    "torch.hub.*": NETWORK,
    "numpy.load": "numpy.load that does not refuse pickles",
    **dict.fromkeys(("yaml.load", "yaml.load_all", "yaml.full_load*", "yaml.unsafe_load*"), YAML),
    **dict.fromkeys(("yaml.*FullLoader", "yaml.*UnsafeLoader", "yaml.Loader", "yaml.CLoader"), YAML),
    **dict.fromkeys(("os.system", "os.popen", "os.spawn*", "os.exec*"), SHELL),
    **dict.fromkeys(
        ("subprocess.getoutput", "subprocess.getstatusoutput", "*.create_subprocess_shell", "snakemake.shell*"), SHELL
    ),
    **dict.fromkeys(("*.extractall", "shutil.unpack_archive"), ARCHIVE),
    "tempfile.mktemp": "a name that somebody else can take first",
    "os.environ.copy": "hands on or stores the whole environment, secrets included",
}
BUILT_IN = ("eval", "exec", "compile", "__import__")
BEYOND = re.compile(r"tcp://(?!(127\.0\.0\.1|localhost)\b)")


def findings(root: Path, files: list[str]) -> list[tuple[str, int, str, str]]:
    """(file, line, text, why) of everything forbidden in files of a folder."""
    found = []
    for name in files:
        text = (root / name).read_text(encoding="utf-8")
        is_workflow = not name.endswith(".py")
        source, line_of = _as_python(text, name) if is_workflow else (text, {})
        search = _Search(ast.parse(source, name), {"shell": "snakemake.shell"} if is_workflow else {}, is_workflow)
        lines = text.splitlines()
        for number, why in sorted({(line_of.get(line, line), why) for line, why in search.findings()}):
            found.append((name, number, lines[number - 1].strip(), why))
    return found


def _as_python(text: str, name: str) -> tuple[str, dict[int, int]]:
    """A workflow file as the Python that Snakemake makes of it, and the line of each of its lines."""
    from snakemake.parser import parse

    line_of: dict[int, int] = {}
    source = SimpleNamespace(get_path_or_uri=lambda secret_free: name)
    workflow = SimpleNamespace(sourcecache=SimpleNamespace(open=lambda _: io.StringIO(text)))
    return parse(source, workflow, line_of)[0], line_of


@dataclass
class _Search:
    """One syntax tree.

    names      what names stand for: those that imports bind, wherever they stand
    all_known  names that are not imported stand for modules, which Snakemake gives to its files; elsewhere they are
               variables
    judged     parts of names, and docstrings, that need no look of their own
    """

    tree: ast.Module
    names: dict[str, str]
    all_known: bool = False
    judged: set[ast.AST] = field(default_factory=set)

    def findings(self) -> Iterator[tuple[int, str]]:
        """Yield (line, why) of everything forbidden."""
        nodes = list(ast.walk(self.tree))  # what is around a node comes before it
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.names |= {bound: name for bound, name, _ in _imported(node)}
        for node in nodes:
            yield from ((node.lineno, why) for why in self._of(node) if why)

    def _of(self, node: ast.AST) -> Iterator[str | None]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (_why(name, whole=False) for _, _, name in _imported(node))
        elif isinstance(node, ast.Call):
            yield from self._of_call(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            self.judged.add(node.value)
        elif node in self.judged:
            return
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            yield _why(self._name(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and BEYOND.search(node.value):
            yield "the network beyond this machine"

    def _of_call(self, call: ast.Call) -> Iterator[str | None]:
        name, given = self._name(call.func), {keyword.arg: keyword.value for keyword in call.keywords}
        if _is_safe(name, call.args, given):
            self.judged.add(call.func)
        if name == "importlib.import_module":
            yield from (_why(str(one.value)) for one in call.args[:1] if isinstance(one, ast.Constant))
        if name in ("dict", "?dict") and "os.environ" in map(self._name, call.args):
            yield NAMES["os.environ.copy"]
        if not _is(given.get("shell"), None, False):
            yield SHELL
        if not _is(given.get("allow_pickle"), None, False):
            yield UNPICKLES

    def _name(self, node: ast.AST) -> str:
        """The full name of `a.b`: from where `a` was imported, or `?a.b`. Its parts are judged with it."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
            if isinstance(node, ast.Attribute | ast.Name):
                self.judged.add(node)
        first = node.id if isinstance(node, ast.Name) else ""
        unknown = f"builtins.{first}" if first in BUILT_IN else first if self.all_known else f"?{first}"
        return ".".join([self.names.get(first, unknown), *reversed(parts)])


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """Yield (the name that is bound, what it stands for, what was imported)."""
    for one in node.names:
        if isinstance(node, ast.ImportFrom):
            name = f"{'.' * node.level}{node.module or ''}.{one.name}"
            yield one.asname or one.name, name, name
        elif one.asname:
            yield one.asname, one.name, one.name
        else:
            yield one.name.partition(".")[0], one.name.partition(".")[0], one.name


def _why(name: str, *, whole: bool = True) -> str | None:
    """Why a name is forbidden; whole: a module of which some may be used is, as only its parts are harmless."""
    for module, (reason, allowed) in MODULES.items():
        inside = f"{name}.".removeprefix(f"{module}.")
        if inside != f"{name}.":
            known = any(inside.startswith(f"{one}.") or (not whole and f"{one}.".startswith(inside)) for one in allowed)
            return None if known else reason
    if name.endswith(".*"):
        return "hides what it imports"
    return next((reason for pattern, reason in NAMES.items() if fnmatchcase(name, pattern)), None)


def _is_safe(name: str, arguments: list[ast.expr], given: Mapping[str | None, ast.expr]) -> bool:
    """Whether a call of a name that is forbidden otherwise does no harm."""
    if name in ("yaml.load", "yaml.load_all"):
        return any(
            ast.unparse(loader).endswith("SafeLoader")
            for loader in [*arguments[1:2], *filter(None, [given.get("Loader")])]
        )
    if name == "importlib.import_module":
        return bool(arguments) and isinstance(arguments[0], ast.Constant)
    keyword, value = {"torch.load": ("weights_only", True), "numpy.load": ("allow_pickle", False)}.get(name, ("", None))
    return keyword in given and _is(given[keyword], value)


def _is(node: ast.expr | None, *values: object) -> bool:
    """Whether an argument is one of some constants; None where it is not given."""
    return (node is None and None in values) or (
        isinstance(node, ast.Constant) and any(node.value is value for value in values)
    )
