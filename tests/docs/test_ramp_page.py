"""The programs of the ramp study's page work as printed."""

import warnings

from gymnasium.utils.env_checker import check_env
from page_sentences import blocks


def test_the_programs_of_the_page_run(repository, monkeypatch, capsys):
    page = (repository / "docs/ramp.md").read_text()
    programs = blocks(page, "python")
    assert len(programs) == 3
    monkeypatch.chdir(repository)
    names: dict = {}
    for program in programs[:2]:
        exec(compile(program, "docs/ramp.md", "exec"), names)
    assert 0 <= float(capsys.readouterr().out) <= 1
    assert names["reward"] in (-1.0, 1.0)
    exec(compile(programs[2], "docs/ramp.md", "exec"), names)  # goes on from the one before
    cluster = names["simulation"].cluster
    accepted = [*(done.running for done in cluster.record.completed), *cluster.running]
    assert {running.plan.split.max_degree for running in accepted} == {4}
    assert {running.plan.placement.mask.bit_count() for running in accepted} == {4}
    assert len(accepted) + len(cluster.record.blocked) == cluster.record.arrived - len(cluster.queue)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(names["AnyServers"](names["simulation"]), skip_render_check=True)
