"""The programs of the ramp study's page work as printed."""

import re


def test_the_programs_of_the_page_run(repository, monkeypatch, capsys):
    page = (repository / "docs/ramp.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    assert len(programs) == 2
    monkeypatch.chdir(repository)
    names: dict = {}
    for program in programs:  # the second goes on from the first
        exec(compile(program, "docs/ramp.md", "exec"), names)
    assert 0 <= float(capsys.readouterr().out) <= 1
    cluster, job = names["cluster"], names["job"]
    running = [one.job.index for one in cluster.running] + [done.running.job.index for done in cluster.record.completed]
    assert running == [job.index]
