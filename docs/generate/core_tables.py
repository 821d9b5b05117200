"""Tables of several pages: what recorded runs cost (docs/guide/first_figures.md); what starts cost, and what a profile
and the code promise (docs/guide/slurm.md, docs/notebook/performance.md and reliability.md), from
docs/results/core_*.csv; what the command `batsim` and its readers accept (docs/reference/batsim_options.md).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import yaml
from table_parts import REPOSITORY, page

from schedlab.batsim.files.profiles import NOT_SIMULATED, PROFILE_TYPES
from schedlab.cli.batsim import OPTIONS, Option
from schedlab.evaluation.promises import PROMISES
from schedlab.evaluation.recorded import read_records
from schedlab.platforms import batsim_xml

LEFT = {  # what takes the time of a study's import without pandas
    "batch": "numba with parts of SciPy: the rewards' kernels",
    "cloud": "Gymnasium",
    "hetero": "Gymnasium",
    "ramp": "numba with parts of SciPy: the look-ahead's kernel",
    "adaptation": "pandas is not imported in either case",
}

GROUPED = {  # the rules of each group of profiles/slurm
    "prepare": "trimmed workloads, platforms, traces, graphs, initial trainings, performance models, best plans",
    "simulate": "simulated adaptations, several replicates in each job",
    "tabulate": "the tables of the simulated adaptations",
    "learn": "learning, one policy with one seed in each job (at scale `small` with all seeds)",
    "evaluate": "scoring, one scenario and one policy in each job",
    "report": "summary and figures of a study",
}


def core_records(results: Path) -> str:
    """What the recorded run of each study cost."""
    rows = []
    for study, record in read_records(results).items():
        used = record.cpu_seconds
        parts = [used.get("learn", 0.0), used.get("evaluate", 0.0)]
        seconds = [*parts, sum(used.values()) - sum(parts), sum(used.values())]
        rows.append([f"`{study}`", *(f"{value / 60:,.0f} min" for value in seconds), f"`{record.run}`, {record.date}"])
    return page(["study", "learning", "scoring", "other jobs", "all jobs", "recorded"], rows, "lrrrrl")


def core_starts(results: Path) -> str:
    """What a start of Snakemake costs with many scenarios."""
    rows = []
    for row in pd.read_csv(results / "core_starts.csv").itertuples():
        seconds = [
            f"{value:.2g} s" if value >= 10 else f"{value:.1f} s" for value in (row.first_cpu_s, row.cached_cpu_s)
        ]
        rows.append([f"{row.scenarios:,}", *seconds, f"{row.memory_mb / 1e3:.2f} GB"])
    return page(["scenarios", "first dry run", "second dry run", "memory"], rows, "rrrr")


def core_imports(results: Path) -> str:
    """CPU seconds of importing a study's module with pandas and without, and what takes the time without."""
    found = pd.read_csv(results / "core_imports.csv", dtype=str)
    rows = [[f"`{row.study}`", row.before_cpu_s, row.after_cpu_s, LEFT[row.study]] for row in found.itertuples()]
    return page(["study", "with pandas", "without pandas", "largest remaining part"], rows, "lrrl")


def core_groups(results: Path) -> str:
    """How many jobs of a group the profile for Slurm puts together."""
    del results
    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/config.yaml").read_text(encoding="utf-8"))
    rows = [
        [f"`{group}`", GROUPED[group], number]
        for group, _, number in (text.partition("=") for text in profile["group-components"])
    ]
    return page(["group", "rules", "jobs together"], rows, "llr")


def core_promises(results: Path) -> str:
    """What each kind of result promises on another machine."""
    del results
    rows = [
        [
            f"`{kind}`",
            ", ".join(f"`{part}`" for part in promise.made_by),
            f"{promise.relative:g}" if promise.relative else "0: the same bytes",
            promise.meaning,
        ]
        for kind, promise in PROMISES.items()
    ]
    return page(["kind", "made by", "relative difference allowed", ""], rows, "llrl")


def batsim_options(_results: Path) -> str:
    """Every option of the command `batsim`, and what is possible instead of those that are not available."""
    rows = [
        [group, f"`{_flags(option)}`", _works(option), option.instead or option.does]
        for group, options in OPTIONS.items()
        for option in options
    ]
    return page(["", "option", "works", "does, or what is possible instead"], rows)


def _works(option: Option) -> str:
    if option.instead:
        return "no"
    return "no effect" if option.does.startswith("is ignored") else "yes"


def _flags(option: Option) -> str:
    default = f"={option.default}" if option.default is not None else ""
    return " ".join([", ".join(option.flags), *option.values]) + default


def batsim_platform(_results: Path) -> str:
    """Every element of SimGrid's platform files that the reader knows."""
    older = {new: old for old, new in batsim_xml.RENAMED.items()}
    rows = []
    for element, attributes in batsim_xml.READ.items():
        name = f"`<{element}>`" + (f", `<{older[element]}>`" if element in older else "")
        rows.append([name, "read", ", ".join(f"`{attribute}`" for attribute in sorted(attributes))])
    rows += [[f"`<{element}>`", "ignored", "changes nothing that Batsim simulates"] for element in batsim_xml.IGNORED]
    rows += [[f"`<{element}>`", "refused", remedy] for element, remedy in batsim_xml.REFUSED.items()]
    rows += [[f"attribute `{name}`", "refused", remedy] for name, remedy in batsim_xml.REFUSED_ATTRIBUTES.items()]
    return page(["element", "", "attributes, or what is possible instead"], rows)


def batsim_profiles(_results: Path) -> str:
    """Every type of profile."""
    rows = [[f"`{kind}`", "simulated", ""] for kind in PROFILE_TYPES]
    rows += [[f"`{kind}`", "refused", instead] for kind, instead in NOT_SIMULATED.items()]
    return page(["type", "", "what is possible instead"], rows)


def core_instructions(results: Path) -> str:
    """What learning costs with the instructions that libraries choose, with the pinned ones, and with older ones."""
    rows = []
    for row in pd.read_csv(results / "instructions.csv").itertuples():
        seconds = [f"{value:.1f} s" for value in (row.chosen_cpu_s, row.v3_cpu_s, row.v2_cpu_s)]
        others = [f"{number} of {row.policies}" for number in (row.other_chosen, row.other_v2)]
        rows.append([f"`{row.scale}`", row.study, *seconds, *others])
    header = ["scale", "study", "chosen by the libraries", "pinned", "x86-64-v2", "other bytes if chosen", "with v2"]
    return page(header, rows, "llrrrrr")


TABLES = (
    core_records,
    core_starts,
    core_imports,
    core_groups,
    core_promises,
    core_instructions,
    batsim_options,
    batsim_platform,
    batsim_profiles,
)
