"""`schedlab data` against a local server that is slow, cuts off, redirects, fails and lies."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from schedlab.cli.main import main
from schedlab.config.data_paths import LOCAL_DATA, entry_of, read_catalogue
from schedlab.config.errors import UserErrors
from schedlab.config.experiment import missing_data
from schedlab.config.runtime import download as fetch
from web_server import Web, serving

pytestmark = pytest.mark.usefixtures("conf")
TRACE = b"; a header\n" + b"1 0 10 5 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n" * 4000
SHA = hashlib.sha256(TRACE).hexdigest()


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as made:
        yield made


@pytest.fixture
def conf(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(fetch, "PAUSE", 0.0)
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf/download").mkdir(parents=True)
    entry(
        tmp_path / "conf", "trace", f"path: a/trace.swf.gz, to: traces/trace.swf.gz, sha256: {SHA}, size: {len(TRACE)}"
    )
    return tmp_path / "conf"


def entry(conf: Path, name: str, *files: str) -> None:
    text = f"name: {name}\npurpose: a test\nlicence: free\nbase: http://example.invalid/\nfiles:\n"
    (conf / f"download/{name}.yaml").write_text(text + "".join(f"  - {{{file}}}\n" for file in files))


def get(web: Web, *names: str) -> int:
    return main(["data", "get", *names, "--base-url", web.address])


def tar_of(members: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return out.getvalue()


def left(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


TARGET = Path("resources/data/traces/trace.swf.gz")


def test_a_file_is_put_where_scenarios_look_for_it(web, capsys):
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE)
    assert get(web, "trace") == 0
    assert gzip.decompress(TARGET.read_bytes()) == TRACE
    assert left(Path("resources/data")) == ["traces/trace.swf.gz"]
    assert "free" in capsys.readouterr().out  # the licence
    assert get(web, "trace") == 0 and len(web.asked) == 1  # it is there


def test_a_download_that_is_cut_off_goes_on_where_it_ended(web):
    web.files["/a/trace.swf.gz"] = packed = gzip.compress(TRACE, compresslevel=0)
    web.cuts = [100_000, 50_000]
    assert get(web, "trace") == 0
    assert web.asked == [None, "bytes=100000-", "bytes=150000-"]
    assert TARGET.read_bytes() == packed


def test_it_goes_on_in_a_later_call_too(web):
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE, compresslevel=0)
    web.cuts = [1000] * fetch.TRIES
    assert get(web, "trace") == 1 and not TARGET.exists()
    assert get(web, "trace") == 0 and web.asked[-1] == f"bytes={1000 * fetch.TRIES}-"


def test_a_slow_answer_is_waited_for_and_a_silent_one_asked_again(web, monkeypatch):
    web.files["/a/trace.swf.gz"] = packed = gzip.compress(TRACE, compresslevel=0)
    monkeypatch.setattr(fetch, "PATIENCE", 0.5)
    web.stalls = [0.1]
    assert get(web, "trace") == 0 and web.asked == [None]
    TARGET.unlink()
    web.asked.clear()
    web.stalls = [2.0]
    begun = time.monotonic()
    assert get(web, "trace") == 0 and time.monotonic() - begun < 2.0
    assert len(web.asked) == 2 and web.asked[1].startswith("bytes=") and TARGET.read_bytes() == packed


def test_a_proxy_is_asked_where_the_environment_names_one(web, monkeypatch):
    monkeypatch.setenv("http_proxy", web.address)
    monkeypatch.setenv("no_proxy", "")
    urllib.request.install_opener(None)  # that of an earlier test knows no proxy
    web.files["http://example.invalid/a/trace.swf.gz"] = gzip.compress(TRACE)
    status = main(["data", "get", "trace"])
    urllib.request.install_opener(None)
    assert status == 0 and TARGET.exists()


@pytest.mark.parametrize("change", ["another tag", "no ranges"])
def test_a_file_that_changed_meanwhile_is_taken_from_its_begin(web, change):
    web.files["/a/trace.swf.gz"] = gzip.compress(b"old" * 90_000, compresslevel=0)
    web.cuts = [1000] * fetch.TRIES
    assert get(web, "trace") == 1
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE)
    web.tag, web.resumes = ('"two"', True) if change == "another tag" else (web.tag, False)
    assert get(web, "trace") == 0 and gzip.decompress(TARGET.read_bytes()) == TRACE


def test_errors_of_the_server_are_tried_again_and_a_missing_file_is_not(web, capsys):
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE)
    web.fails = [503, 500]
    assert get(web, "trace") == 0 and len(web.asked) == 3
    TARGET.unlink()
    web.files.clear()
    assert get(web, "trace") == 1 and len(web.asked) == 4
    assert "404" in capsys.readouterr().err


def test_redirections_are_followed_to_http_alone(web, tmp_path):
    web.files["/b"] = gzip.compress(TRACE)
    web.moved["/a/trace.swf.gz"] = "/b"
    assert get(web, "trace") == 0 and TARGET.exists()
    TARGET.unlink()
    (tmp_path / "secret").write_text("secret")
    web.moved["/a/trace.swf.gz"] = f"file://{tmp_path}/secret"
    assert get(web, "trace") == 1 and not TARGET.exists()


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(TRACE[:-1]),
        b"<html>log in first</html>",
        gzip.compress(b"x" * 10_000_000),
        b"",
        gzip.compress(TRACE)[:-9],
    ],
    ids=["other", "page", "bomb", "empty", "cut"],
)
def test_another_content_is_refused_and_leaves_nothing(web, content, capsys):
    web.files["/a/trace.swf.gz"] = content
    assert get(web, "trace") == 1
    assert left(Path("resources/data")) in ([], [".partial/trace-0.json"])
    assert "trace.swf.gz" in capsys.readouterr().err
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE)
    assert get(web, "trace") == 0 and TARGET.exists()  # what was wrong is not gone on with


def test_an_answer_without_end_is_ended(web, monkeypatch, capsys):
    monkeypatch.setattr(fetch, "MOST_UNPACKED", 1000)
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE, compresslevel=0)
    assert get(web, "trace") == 1 and left(Path("resources/data")) == [".partial/trace-0.json"]
    assert len(web.asked) == 1 and "1,000" in capsys.readouterr().err


def test_what_was_there_stays_where_a_new_download_fails(web):
    TARGET.parent.mkdir(parents=True)
    TARGET.write_bytes(b"mine")
    web.files["/a/trace.swf.gz"] = b"nonsense"
    assert get(web, "trace") == 1 and TARGET.read_bytes() == b"mine"


def test_a_plain_file_is_packed_where_its_place_says_so(conf, web):
    entry(conf, "plain", f"path: t.swf, to: traces/t.swf.gz, sha256: {SHA}")
    web.files["/t.swf"] = TRACE
    assert get(web, "plain") == 0
    first = Path("resources/data/traces/t.swf.gz").read_bytes()
    assert gzip.decompress(first) == TRACE
    assert main(["data", "get", "plain", "--force", "--base-url", web.address]) == 0
    assert Path("resources/data/traces/t.swf.gz").read_bytes() == first  # no clock in it


def test_an_archive_is_unpacked_without_links_pickles_and_ways_out(conf, web):
    sample = hashlib.sha256(b"1,2").hexdigest()
    entry(
        conf,
        "published",
        "path: x.tar.gz, to: pub, "
        f"archive: {{below: '*/results', leave_out: ['*.pkl'], sample: {{run/a.csv: {sample}}}}}",
    )
    members = {
        "top/results/run/a.csv": b"1,2",
        "top/results/run/data.pkl": b"evil",
        "top/README": b"no",
        "top/results/../../../out": b"evil",
    }
    web.files["/x.tar.gz"] = tar_of(members, {"top/results/link": "/etc/passwd"})
    assert get(web, "published") == 0
    assert left(Path("resources/data")) == ["pub/run/a.csv"] and not Path("out").exists()
    assert main(["data", "check", "published"]) == 0
    web.files["/x.tar.gz"] = tar_of({"top/results/run/a.csv": b"3"})
    assert main(["data", "get", "published", "--force", "--base-url", web.address]) == 1
    assert Path("resources/data/pub/run/a.csv").read_bytes() == b"1,2"


def test_a_folder_stays_where_no_other_can_be_moved_in(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.csv").write_text("1,2")
    with pytest.raises(FileNotFoundError):
        fetch._replace_folder(tmp_path / "absent", tmp_path / "data")
    assert left(tmp_path / "data") == ["a.csv"]


def test_a_hash_that_nobody_pinned_is_printed(conf, web, capsys):
    entry(conf, "new", "path: n.txt, to: n.txt")
    web.files["/n.txt"] = b"new"
    assert get(web, "new") == 0
    out = capsys.readouterr().out
    assert hashlib.sha256(b"new").hexdigest() in out and "files.0.sha256" in out


def test_check_finds_what_is_wrong_or_missing(web):
    assert main(["data", "check"]) == 0  # nothing is there
    assert main(["data", "check", "trace"]) == 1
    TARGET.parent.mkdir(parents=True)
    TARGET.write_bytes(gzip.compress(b"other"))
    assert main(["data", "check"]) == 1
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE)
    assert get(web, "trace") == 0  # another content is downloaded again
    assert main(["data", "check"]) == 0


def test_the_data_folder_is_the_one_that_is_named(web, monkeypatch, tmp_path):
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE)
    monkeypatch.setenv("SCHEDLAB_DATA", str(tmp_path / "shared"))
    assert get(web, "trace") == 0 and (tmp_path / "shared/traces/trace.swf.gz").exists()
    assert main(["data", "get", "trace", "--data-dir", "elsewhere", "--base-url", web.address]) == 0
    assert Path("elsewhere/traces/trace.swf.gz").exists()


def test_a_data_folder_that_cannot_be_written_is_one_sentence(web, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["data", "get", "trace", "--data-dir", str(tmp_path / "file")]) == 2 and not web.asked
    assert str(tmp_path / "file") in (said := capsys.readouterr().err) and said.count("\n") == 1


@pytest.mark.parametrize("words", [["get", "tracee"], ["check", "nothing"], ["get", "trace", "--base-url", "ftp://x"]])
def test_wrong_words_are_named(words, capsys):
    try:
        status = main(["data", *words])
    except SystemExit as ended:  # argparse
        status = ended.code
    assert status == 2 and capsys.readouterr().err


@pytest.mark.parametrize(
    "file",
    [
        "path: a, to: ../a",
        "path: a, to: /a",
        "path: a, to: .partial/a",
        "path: a, to: ./.partial",
        'path: "//[", to: a',
        'path: "//host.example:port/a", to: a',
        "path: a, to: a, sha256: 12",
        "path: a",
    ],
)
def test_wrong_entries_are_named_with_file_and_key(conf, file):
    entry(conf, "bad", file)
    with pytest.raises(UserErrors) as error:
        read_catalogue(conf)
    assert "bad.yaml" in error.value.errors[0].where and "files" in error.value.errors[0].where


def test_the_shipped_catalogue_is_named_where_data_is_missing(repository, monkeypatch):

    monkeypatch.chdir(repository)
    shipped = read_catalogue(repository / "conf")
    assert entry_of(shipped, "traces/HPC2N-2002-2.2-cln.swf.gz") == "hpc2n"
    assert entry_of(shipped, "graphs") == "pipedream" and entry_of(shipped, "cifar10") == "cifar10"
    assert entry_of(shipped, str(LOCAL_DATA)) is None
    need = {"name": "the trace", "path": "traces/CTC-SP2-1996-3.1-cln.swf.gz", "source": "the archive", "files": []}
    assert "schedlab data get ctc_sp2" in missing_data({"requires": [need]})[0]


@pytest.mark.parametrize("base", ["http://[", "http://host.example:port/"])
def test_a_base_that_is_no_address_is_named_with_file_and_key(conf, base, capsys):
    entry(conf, "bad", "path: a, to: a")
    text = (conf / "download/bad.yaml").read_text()
    (conf / "download/bad.yaml").write_text(text.replace("http://example.invalid/", f'"{base}"'))
    assert main(["data", "get", "trace"]) == 2
    assert "bad.yaml: base: " in (said := capsys.readouterr().err) and base in said and said.count("\n") == 1


@pytest.mark.parametrize("mirror", ["http://[", "http://127.0.0.1:notaport", "http://:80", "ftp://x"])
def test_a_mirror_that_is_no_address_is_named_with_its_option(mirror, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["data", "get", "trace", "--base-url", mirror])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "--base-url" in said and mirror in said and "_address" not in said


def test_own_entries_are_added_to_the_shipped_ones_and_win_on_equal_names(conf, repository, capsys):
    entry(conf, "hpc2n", "path: mine, to: mine")
    entry(conf, "zz_graphs", "path: graph, to: graphs/alexnet.txt")
    found, shipped = read_catalogue(conf), read_catalogue(repository / "conf")
    assert set(found) == {*shipped, "trace", "zz_graphs"} and found["hpc2n"].files[0].to == "mine"
    assert entry_of(found, "graphs/alexnet.txt") == "zz_graphs" and entry_of(found, "graphs/gnmt.txt") == "pipedream"
    assert main(["data", "list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert names == sorted(found)


@pytest.fixture
def asks(monkeypatch) -> list[str]:
    """The requested addresses, one for each try."""
    found, real = [], urllib.request.urlopen

    def ask(request: urllib.request.Request, timeout: float) -> object:
        found.append(request.full_url)
        return real(request, timeout=timeout)

    monkeypatch.setattr(urllib.request, "urlopen", ask)
    return found


@pytest.mark.parametrize("path", ["a b", "ä"])
def test_an_address_that_cannot_be_asked_for_is_not_tried_again(conf, asks, path, capsys):
    entry(conf, "bad", f'path: "{path}", to: a')
    assert main(["data", "get", "bad"]) == 1 and len(asks) <= 1
    assert capsys.readouterr().err.splitlines()[0].startswith("error: http://")


def test_a_host_that_is_not_reached_is_tried_several_times_once(conf, asks, capsys):
    entry(conf, "several", *(f"path: {name}, to: {name}" for name in "abc"))
    with serving() as gone:
        pass
    assert main(["data", "get", "several", "trace", "--base-url", gone.address]) == 1
    assert asks == [f"{gone.address}/a"] * fetch.TRIES + [
        f"{gone.address}/{name}" for name in ("b", "c", "a/trace.swf.gz")
    ]
    assert capsys.readouterr().err.count(f"error: {gone.address}/") == 4


def test_a_host_that_answers_is_tried_several_times_for_each_file(conf, web, asks):
    entry(conf, "several", *(f"path: {name}, to: {name}" for name in "ab"))
    web.fails = [503] * 2 * fetch.TRIES
    assert get(web, "several") == 1 and len(asks) == 2 * fetch.TRIES


def test_a_failure_is_printed_when_it_happens(conf, web, monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr("sys.stdout", out)
    entry(conf, "some", "path: missing, to: m", "path: n.txt, to: n.txt")
    web.files["/n.txt"] = b"new"
    assert get(web, "some") == 1
    assert out.getvalue().index("404") < out.getvalue().index("n.txt: got") and out.getvalue().count("404") == 1


def test_a_part_that_cannot_be_written_is_not_tried_again(web, capsys):
    part = Path("resources/data/.partial/trace-0.part")
    part.mkdir(parents=True)
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE)
    assert get(web, "trace") == 1 and len(web.asked) == 1
    assert f"error: {part}: " in capsys.readouterr().err


def test_a_note_that_is_damaged_is_no_note(web):
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE)
    for damaged in ("{", "[]", '{"address": 1}'):
        Path("resources/data/.partial").mkdir(parents=True)
        Path("resources/data/.partial/trace-0.part").write_text("x")
        Path("resources/data/.partial/trace-0.json").write_text(damaged)
        assert get(web, "trace") == 0 and web.asked[-1] is None
        TARGET.unlink()


@pytest.mark.parametrize("complete", [206, 416])
def test_a_target_that_cannot_be_written_stops_no_other_and_its_download_is_kept(conf, web, complete, capsys):
    entry(conf, "pub", "path: x.tar.gz, to: traces/pub, archive: {below: ''}")
    entry(conf, "wide", "path: n.txt, to: n.txt")
    traces = Path("resources/data/traces")
    traces.parent.mkdir(parents=True)
    traces.touch()
    web.files = {"/a/trace.swf.gz": gzip.compress(TRACE), "/n.txt": b"new", "/x.tar.gz": tar_of({"a.csv": b"1"})}
    web.complete = complete
    assert get(web, "trace", "pub", "wide") == 1 and Path("resources/data/n.txt").exists()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3 and all(str(traces) in line for line in said[:2])
    traces.unlink()
    web.asked.clear()
    assert get(web, "trace", "pub") == 0
    assert web.asked == [f"bytes={len(web.files[name])}-" for name in ("/a/trace.swf.gz", "/x.tar.gz")]
    assert gzip.decompress(TARGET.read_bytes()) == TRACE and left(traces) == ["pub/a.csv", "trace.swf.gz"]
    assert not Path("resources/data/.partial").exists()


@pytest.mark.parametrize(("date", "second"), [("Mon, 06 Jan 2025 10:00:00 GMT", "bytes=1000-"), ("", None)])
def test_where_the_tag_is_weak_the_date_tells_whether_to_go_on(web, date, second):
    web.files["/a/trace.swf.gz"] = gzip.compress(TRACE, compresslevel=0)
    web.tag, web.date, web.cuts = 'W/"one"', date, [1000]
    assert get(web, "trace") == 0 and web.asked == [None, second]


def test_two_calls_for_one_entry_get_it_once(web):
    web.files["/a/trace.swf.gz"] = packed = gzip.compress(TRACE, compresslevel=0)
    web.stalls = [3.0]
    command = [sys.executable, "-c", "import sys; from schedlab.cli.main import main; sys.exit(main(sys.argv[1:]))"]
    command += ["data", "get", "trace", "--base-url", web.address]
    calls = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [call.communicate(timeout=60)[0] for call in calls]
    assert [call.returncode for call in calls] == [0, 0, 0] and web.asked == [None]
    assert sum("is there" in each for each in said) == 2 and TARGET.read_bytes() == packed
    assert left(Path("resources/data")) == ["traces/trace.swf.gz"]


def row(capsys, name: str) -> list[str]:
    capsys.readouterr()
    assert main(["data", "list"]) == 0
    return next(line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{name} ")).split()


@pytest.mark.parametrize("folder", ["shared", "resources/data", "."])
def test_a_file_is_there_in_each_folder_that_runs_search(monkeypatch, tmp_path, folder, capsys):
    monkeypatch.setenv("SCHEDLAB_DATA", str(tmp_path / "shared"))
    assert row(capsys, "trace")[1:3] == ["1", "0"] and main(["data", "check", "trace"]) == 1
    assert f"{tmp_path}/shared/traces/trace.swf.gz: " in capsys.readouterr().out  # where it would be put
    path = tmp_path / folder / "traces/trace.swf.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(TRACE))
    assert row(capsys, "trace")[1:3] == ["1", "1"] and main(["data", "check", "trace"]) == 0
    path.write_bytes(gzip.compress(b"other"))
    assert main(["data", "check"]) == 1
    assert main(["data", "check", "trace", "--data-dir", "elsewhere"]) == 1
    assert "elsewhere/traces/trace.swf.gz: " in capsys.readouterr().out


def test_the_list_states_the_size_as_far_as_the_catalogue_has_it(conf, capsys):
    entry(conf, "large", "path: a, to: a, size: 1230000", "path: b, to: b, size: 20000")
    entry(conf, "partly", "path: a, to: a, size: 1230000", "path: b, to: b")
    entry(conf, "unknown", "path: a, to: a")
    assert [row(capsys, name)[3] for name in ("large", "partly", "unknown")] == ["1.25", ">1.23", "-"]
