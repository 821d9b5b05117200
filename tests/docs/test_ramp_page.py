"""The programs of the ramp study's page work as printed."""

import re


def test_the_programs_of_the_page_run(repository, monkeypatch, capsys):
    page = (repository / "docs/ramp.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    assert len(programs) == 3
    monkeypatch.chdir(repository)
    names: dict = {}
    for program in programs:  # the last goes on from the one before
        exec(compile(program, "docs/ramp.md", "exec"), names)
    assert 0 <= float(capsys.readouterr().out) <= 1
    assert names["reward"] in (-1.0, 1.0)
    cluster, job = names["cluster"], names["job"]
    running = [one.job.index for one in cluster.running] + [done.running.job.index for done in cluster.record.completed]
    assert running == [job.index]
