import json
import re
from html.parser import HTMLParser

import pytest

from slimfl.errors import RequestError
from slimfl.report import write_report
from slimfl.results import summarise
from slimfl.results.curves import POINTS


class Page(HTMLParser):
    """Elements with attributes, the text of scripts and styles, and all other text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag in ("script", "style"):
            self.raw.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside in ("script", "style"):
            tag, attributes, text = self.raw[-1]
            self.raw[-1] = (tag, attributes, text + data)
        else:
            self.text += data

    def json(self, key: str):
        (text,) = [text for _, attributes, text in self.raw if attributes.get("id") == key]
        return json.loads(text)


def read(records, tmp_path) -> Page:
    path = write_report(records, tmp_path / "report.html")
    return Page(path.read_text(encoding="utf-8"))


def test_the_page_loads_nothing(paper_runs, tmp_path):
    page = read(paper_runs, tmp_path)
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form"), tag
        for name in ("src", "srcset", "data", "poster", "action"):
            assert name not in attributes, (tag, attributes)
        assert (attributes.get("href") or "#").startswith("#")
    for tag, attributes, text in page.raw:
        if tag == "style":
            assert "@import" not in text
            assert "url(" not in text
        elif "Plotly" not in text[:4000] and "plotly.js" not in text[:4000]:
            assert not re.search(r"https?://", text), attributes
    own = page.raw[-1][2]
    for call in ("fetch(", "XMLHttpRequest", "import(", "sendBeacon", "WebSocket"):
        assert call not in own
    (policy,) = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_plotly_is_embedded_once(paper_runs, tmp_path):
    page = read(paper_runs, tmp_path)
    assert sum(len(text) > 1_000_000 for _, _, text in page.raw) == 1


def test_the_data_are_the_summary_and_the_curves(paper_runs, tmp_path):
    data = read(paper_runs, tmp_path).json("slimfl-data")
    assert data["summary"] == json.loads(json.dumps(summarise(paper_runs).as_json()))
    assert [curve["method"] for curve in data["curves"]] == [
        "slimfl",
        "vanilla-0.5x",
        "vanilla-1.0x",
    ]
    assert data["curves"][0]["accuracy"]["0.5x"]["mean"] == pytest.approx([0.55, 0.65])
    assert data["thinned"] is False


def test_every_section_is_there_and_described(paper_runs, tmp_path):
    page = read(paper_runs, tmp_path)
    sections = [a["id"] for tag, a in page.elements if tag == "section"]
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert links == [f"#{key}" for key in sections]
    figures = [a for tag, a in page.elements if a.get("class") == "plot"]
    assert all(a["role"] == "img" and a["aria-label"] for a in figures)
    assert [a["id"] for a in figures] == list(page.json("slimfl-plots"))
    kinds = [a["id"].rpartition("-")[0] for a in figures]
    assert kinds == ["accuracy", *["arrivals"] * 3, "delivered", "bits", "energy", "partition"]
    for words in ("leads", "Vanilla FL-1.5x", "ab" * 32, "torch 2.13.0", "slimfl run "):
        assert words in page.text, words


def test_a_scene_has_its_own_plots(make_run, tmp_path):
    runs = [make_run(), make_run(name="b", experiment={"radio__channel": "good"})]
    page = read(runs, tmp_path)
    kinds = [key.rpartition("-")[0] for key in page.json("slimfl-plots")]
    assert kinds.count("accuracy") == 2
    assert "Poor channel" in page.text
    assert "Good channel" in page.text


def test_names_cannot_become_markup(make_run, tmp_path):
    evil = '<script>alert("1")</script>&amp;</script>'
    name = evil.replace("/", "\u2215")
    runs = [
        make_run(name=name, experiment={"model__name": evil, "data__dataset": evil}),
        make_run(name="plain", experiment={"data__dataset": evil}),
    ]
    text = write_report(runs, tmp_path / "report.html").read_text()
    assert "<script>alert" not in text
    page = Page(text)
    assert evil in page.text, "it reads as it was given"
    assert sum(tag == "script" for tag, _ in page.elements) == 4
    plots = page.json("slimfl-plots")
    assert evil in page.json("slimfl-data")["curves"][0]["name"]
    named = [trace["name"] for trace in plots["accuracy-0"]["data"]]
    assert named[0].startswith("SlimFL (model.name &lt;script&gt;"), "Plotly reads names as HTML"


def test_long_runs_are_thinned_and_the_page_says_so(make_run, tmp_path):
    run = make_run(curves={"1.0x": [0.5] * 3}, method="vanilla-1.0x")
    first = run.lines[0]
    run.lines[:] = [first.model_copy(update={"round": i + 1}) for i in range(5000)]
    page = read([run], tmp_path)
    plots = page.json("slimfl-plots")
    for key in ("accuracy-0", "arrivals-1", "energy-4"):
        assert len(plots[key]["data"][0]["x"]) == POINTS
    assert page.json("slimfl-data")["thinned"] is True
    assert "at most 2,000 rounds" in page.text
    (row,) = page.json("slimfl-data")["summary"]["runs"]
    assert row["rounds_done"] == 5000, "the table uses all rounds"


def test_a_run_that_has_not_begun_gives_a_page(make_run, tmp_path):
    page = read([make_run(curves={})], tmp_path)
    assert "0 of 1 rounds" in page.text


def test_the_file_appears_whole_or_not_at_all(make_run, tmp_path):
    path = write_report([make_run()], tmp_path / "new" / "report.html")
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="choose another path"):
        write_report([make_run(seed=1)], tmp_path / "file" / "report.html")


def test_epsilon_stands_in_the_table_of_runs_where_there_is_one(make_run, tmp_path):
    plain = make_run()
    assert "epsilon (delta)" not in read([plain], tmp_path).text
    private = make_run(seed=1, privacy={"epsilon": 3.14159, "delta": 1e-5})
    unbounded = make_run(seed=2, privacy={"epsilon": None, "delta": 1e-5})
    page = read([plain, private, unbounded], tmp_path)
    assert "epsilon (delta)" in page.text
    assert "3.14 (1e-05)" in page.text
    assert "unbounded (1e-05)" in page.text
    rows = page.json("slimfl-data")["summary"]["runs"]
    assert [row["privacy"] and row["privacy"]["epsilon"] for row in rows] == [None, 3.14159, None]
