"""Workloads made from settings: each source, each step, the files and that they are the same each time; and the picture
of a trace.
"""

from __future__ import annotations

import gzip
import json
from itertools import pairwise

import numpy as np
import pytest
from small_traces import trace

from schedlab.config.errors import UserError, UserErrors
from schedlab.config.schema import validate
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.platforms.generate import hierarchy_of
from schedlab.platforms.settings import PlatformSettings
from schedlab.workloads.batsim_file import BatsimWorkload, write_batsim
from schedlab.workloads.lublin import LublinSettings, lublin
from schedlab.workloads.pictures import draw_trace
from schedlab.workloads.prepare import make_batsim, make_trace, write_trace
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.swf import read_swf
from schedlab.workloads.trace import offered_load


def workload(**values) -> WorkloadSettings:
    return validate(WorkloadSettings, values)


def test_every_step_is_taken_in_order(repository):
    file = str(repository / "tests/data/batch/lab-128.swf.gz")
    settings = workload(
        source="swf",
        file=file,
        cleaning={"profile": "rlscheduler"},
        trim={"first": 100, "count": 500},
        load=0.7,
        estimates={"model": "menu"},
    )
    made, report = make_trace(settings)
    assert report["cleaning"]["kept"] == 1492
    assert len(made.jobs) == report["statistics"]["jobs"] == 500
    assert made.jobs["submit"].iloc[0] == 0
    assert offered_load(made) == pytest.approx(0.7, rel=1e-3)
    assert (made.jobs["time_requested"] >= made.jobs["run"]).all()
    assert [line.split(":")[0] for line in made.comments[-4:]] == [" Note"] * 4
    assert (make_trace(workload(lublin={"jobs": 9}, estimates={"model": "none"}))[0].jobs["time_requested"] == -1).all()


def test_the_files_are_whole_and_the_same_each_time(tmp_path):
    settings = workload(lublin={"jobs": 200, "processors": 256}, trim={"count": 100}, seed=3)
    for name in ("a", "b"):
        folder = tmp_path / name
        write_trace(settings, folder / "trace.swf.gz", folder / "report.json")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert len(read_swf(tmp_path / "a/trace.swf.gz").jobs) == 100
    assert json.loads((tmp_path / "a/report.json").read_text())["statistics"]["jobs"] == 100


def test_the_batsim_workload_is_made_from_the_trace_and_the_same_each_time():
    settings = workload(
        lublin={"jobs": 200, "processors": 256}, trim={"count": 100}, batsim={"missing_memory": [500, 2000], "jobs": 50}
    )
    gaia = hierarchy_of(PlatformSettings(name="gaia", file="gaia"))
    made, report = make_batsim(settings, gaia)
    assert (len(made.jobs), report["statistics"]["jobs"], report["conversion"]["written"]) == (50, 100, 50)
    assert make_batsim(settings, gaia) == (made, report)


def test_a_workload_file_of_batsim_is_taken_as_it_is(tmp_path):
    custom = BatsimWorkload(
        4, [{"id": "a", "subtime": 1.5, "res": 1, "profile": "p", "own": [1]}], {"p": {"type": "delay", "delay": 2}}
    )
    write_batsim(tmp_path / "w.json", custom)
    settings = workload(source="batsim", file=str(tmp_path / "w.json"))
    made, report = make_batsim(settings, hierarchy_of(PlatformSettings(file="learning")))
    assert (made, report["jobs"]) == (custom, 1)
    with pytest.raises(UserError, match="is no trace"):
        make_trace(settings)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"source": "swf"}, "a file for the sources"),
        ({"file": "x.swf"}, "none for lublin"),
        ({"source": "batsim", "file": "w.json", "load": 0.5}, "no trim, load or estimates"),
        ({"cleaning": {"profil": "none"}}, "did you mean 'profile'"),
        ({"cleaning": {"profile": "rl"}}, "profile"),
        ({"trim": {"count": 0}}, "count"),
        ({"batsim": {"infeasible": "drop"}}, "infeasible"),
    ],
)
def test_impossible_settings_are_refused(values, told):
    with pytest.raises(UserErrors, match=told):
        workload(**values)


def test_a_trace_that_is_cut_off_leaves_no_file(tmp_path):
    (tmp_path / "cut.swf.gz").write_bytes(gzip.compress(b"1 2 3\n" * 100)[:-5])
    with pytest.raises(UserError, match=r"cut\.swf\.gz"):
        write_trace(
            workload(source="swf", file=str(tmp_path / "cut.swf.gz")), tmp_path / "trace.swf", tmp_path / "report.json"
        )
    assert [path.name for path in tmp_path.iterdir()] == ["cut.swf.gz"]


def test_labels_of_a_narrow_range_do_not_overlap():
    jobs = trace(*({"submit": 10 * number, "run": 60 + number} for number in range(5)))
    with theme.applied(ThemeSettings()):
        axes = draw_trace(jobs).figure.axes[3]
        axes.figure.draw_without_rendering()
        labels = [label for label in axes.get_xticklabels(which="both") if label.get_text()]
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_the_picture_shows_what_the_trace_holds():
    with theme.applied(ThemeSettings()):
        drawing = draw_trace(lublin(LublinSettings(jobs=400, processors=64), 1))
        panels = drawing.figure.axes
        assert [panel.get_title(loc="left")[0] for panel in panels] == list("abcdef")
        assert np.sum([bar.get_height() for bar in panels[0].patches]) == pytest.approx(100)
        assert np.sum([bar.get_height() for bar in panels[3].patches]) == pytest.approx(100)
        assert (drawing.values["jobs"], drawing.values["processors"]) == (400, 64)
        assert "names no date" in panels[1].texts[0].get_text()
        for odd in (
            trace({}),
            trace({"run": -1, "procs_allocated": -1}, comments=()),
            trace({"submit": 5}, {"submit": 5}),
        ):
            draw_trace(odd).figure.draw_without_rendering()
        with pytest.raises(UserError, match="no job"):
            draw_trace(trace())
