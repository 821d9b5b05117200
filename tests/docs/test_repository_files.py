"""The files that others' tools read at the root of the repository, and the links and pictures of all pages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import schedlab

# Keys of the Citation File Format 1.2.0; its schema allows no others.
REQUIRED_KEYS = {"cff-version", "message", "title", "authors"}
CITATION_KEYS = REQUIRED_KEYS | {
    "abstract",
    "commit",
    "contact",
    "date-released",
    "doi",
    "identifiers",
    "keywords",
    "license",
}
CITATION_KEYS |= {
    "license-url",
    "preferred-citation",
    "references",
    "repository",
    "repository-artifact",
    "repository-code",
}
CITATION_KEYS |= {"type", "url", "version"}
HEADING = re.compile(r"^#+ (.*)$", flags=re.M)


def test_the_citation_is_valid(repository: Path) -> None:
    citation = yaml.safe_load((repository / "CITATION.cff").read_text())
    assert REQUIRED_KEYS <= set(citation) <= CITATION_KEYS
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software" and citation["license"] == "MIT"
    assert citation["version"] == schedlab.__version__
    assert citation["authors"] == [{"name": "schedlab developers"}]  # an entity: `name` and none of a person's keys
    assert all(isinstance(citation[key], str) and citation[key] for key in ("message", "title", "abstract"))


def test_the_licence_is_mit_everywhere(repository: Path) -> None:
    assert (repository / "LICENSE").read_text().startswith("MIT License\n")
    assert 'license = "MIT"' in (repository / "pyproject.toml").read_text()


def test_the_workflow_catalogue_finds_what_it_looks_for(repository: Path) -> None:
    """Names and places as its page on adding workflows and its program demand them for the area of standardised
    usage.
    """
    usage = yaml.safe_load((repository / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"} and usage["report"] is True
    assert set(usage["software-stack-deployment"]) == {"conda", "apptainer", "apptainer+conda"}
    assert not any(usage["software-stack-deployment"].values())  # no workflow rule names an environment of its own
    assert not [
        file
        for file in (repository / "workflow/rules").rglob("*.smk")
        if re.search(r"^\s+conda:", file.read_text(), flags=re.M)
    ]
    assert (repository / "config/README.md").is_file() and list((repository / "workflow/rules").glob("*.smk"))
    assert {"snakemake", "workflow"} <= set(re.findall(r"\w+", (repository / "README.md").read_text().lower()))


def test_the_catalogues_snakefile_is_the_workflow(repository: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "-s",
        str(repository / "workflow/Snakefile"),
        "--list-rules",
        "--config",
        "scale=smoke",
    ]
    (tmp_path / "conf").mkdir()  # a configuration without studies
    (tmp_path / "conf/config.yaml").write_text("defaults: [scale: smoke, _self_]\nseed: 1\n")
    for name, text in (
        ("scale/smoke", "name: smoke\n"),
        ("figure/theme", (repository / "conf/figure/theme.yaml").read_text()),
    ):
        (tmp_path / f"conf/{name}.yaml").parent.mkdir()
        (tmp_path / f"conf/{name}.yaml").write_text(text)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {"all", "learn", "evaluate", "summarise", "make_trace"} <= set(done.stdout.split())


def pages(repository: Path) -> list[Path]:
    return [
        *sorted(repository.glob("*.md")),
        *sorted((repository / "docs").rglob("*.md")),
        repository / "config/README.md",
    ]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    plain = (
        re.sub(r"\[(.*?)\]\(.*?\)|`", r"\1", heading).strip().lower() for heading in HEADING.findall(page.read_text())
    )
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_every_link_leads_somewhere(repository: Path) -> None:
    dead = []
    for page in pages(repository):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"https?://|mailto:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                dead.append(f"{page.relative_to(repository)}: {target}")
    assert not dead


@pytest.mark.parametrize("study", ["adaptation", "batch", "cloud", "hetero", "ramp"])
def test_the_readme_shows_a_small_picture_and_a_headline_of_each_study(repository: Path, study: str) -> None:
    readme = (repository / "README.md").read_text()
    assert f"](docs/pictures/{study}.png)" in readme
    picture = (repository / f"docs/pictures/{study}.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) < 120_000
    headline = readme.split("<!-- from docs/results: headlines -->", 1)[1].split("<!-- end of headlines -->", 1)[0]
    assert f"| `{study}` |" in headline


def test_no_two_test_modules_have_one_name(repository: Path) -> None:
    """They are no packages, so that pytest would refuse the second where it collects both, and find nothing wrong
    with either alone.
    """
    names = [path.name for path in (repository / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
