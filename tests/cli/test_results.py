"""`slimfl compare` and `slimfl report`: which folders they accept, and what they write."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from slimfl.cli.app import app
from slimfl.errors import RequestError

runner = CliRunner()


def compared(*paths) -> list[str]:
    done = runner.invoke(app, ["compare", "--json", *map(str, paths)], catch_exceptions=False)
    assert done.exit_code == 0
    return [run["path"] for run in json.loads(done.stdout)["runs"] if run["path"]]


def test_compare_takes_a_run_a_group_and_the_folder_above(make_run, tmp_path):
    for method, curves in (("slimfl", {"1.0x": [0.5]}), ("vanilla-1.0x", {"1.0x": [0.4]})):
        make_run(method, curves=curves, name=method)
    above = tmp_path / "above"
    above.mkdir()
    for group in ("b", "a"):
        shutil.copytree(tmp_path / "runs", above / group)
    (above / "notes").mkdir()
    (above / "notes.txt").write_text("mine")
    inside = ["slimfl", "vanilla-1.0x"]
    assert compared(above / "a" / "slimfl") == [str(above / "a" / "slimfl")]
    assert compared(above / "b") == [str(above / "b" / name) for name in inside]
    both = [str(above / group / name) for group in "ab" for name in inside]
    assert sorted(compared(above)) == both
    assert sorted(compared(above, above / "a")) == both, "a run named twice is read once"


def test_a_folder_without_runs_is_refused(tmp_path):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    with pytest.raises(RequestError, match="is not a run folder and contains none"):
        runner.invoke(app, ["compare", str(tmp_path)], catch_exceptions=False)


@pytest.mark.parametrize("name", ["x.pdf", "x", "x.svg", "html", ".html"])
def test_a_report_is_an_html_page_or_nothing(make_run, tmp_path, name):
    run = make_run()
    with pytest.raises(RequestError, match=r"end the name in \.html"):
        runner.invoke(
            app, ["report", str(run.path), "--out", str(tmp_path / name)], catch_exceptions=False
        )
    assert not (tmp_path / name).exists()


def test_the_report_of_the_folder_above_stands_in_it(make_run, tmp_path):
    make_run()
    done = runner.invoke(app, ["report", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    assert (tmp_path / "report.html").is_file()
    page = tmp_path / "Page.HTM"
    runner.invoke(app, ["report", str(tmp_path), "--out", str(page)], catch_exceptions=False)
    assert page.is_file()


def test_a_damaged_experiment_is_named(make_run, tmp_path):
    make_run("slimfl", curves={"1.0x": [0.5]}, name="good")
    make_run("slimfl", curves={"1.0x": [0.5]}, name="bad")
    file = tmp_path / "runs" / "bad" / "experiment.toml"
    lines = file.read_text().splitlines(keepends=True)
    changed = ["rounds = 0\n" if line.startswith("rounds = ") else line for line in lines]
    file.write_text("".join(changed))
    for command in ("compare", "report"):
        with pytest.raises(RequestError, match=rf"^{file}: rounds: input should be greater"):
            runner.invoke(app, [command, str(tmp_path / "runs")], catch_exceptions=False)
