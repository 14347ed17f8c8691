"""The HTML report: its sections, its numbers, and escaping."""

import json
import random
import re
from html.parser import HTMLParser

import pytest

from slimfl.report.pages.run_report import write_report
from slimfl.results.curves import POINTS
from slimfl.results.summary import summarise


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
        else:
            named = set(re.findall(r"https?://[^\"' ]*", text))
            assert {name.split("/")[2] for name in named} <= {"www.w3.org"}, "names, not addresses"
            for call in ("fetch(", "XMLHttpRequest", "import(", "sendBeacon", "WebSocket", "eval("):
                assert call not in text, attributes
    (policy,) = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_the_data_are_the_summary_and_the_curves(paper_runs, tmp_path):
    page = read(paper_runs, tmp_path)
    data = page.json("slimfl-data")
    assert data["summary"] == json.loads(json.dumps(summarise(paper_runs).as_json()))
    assert data["thinned"] is False
    drawn = page.json("slimfl-plots")["accuracy-0"]
    assert [line["name"] for line in drawn["series"]] == [
        "SlimFL, 0.5x",
        "SlimFL, 1.0x",
        "Vanilla FL-0.5x, 0.5x",
        "Vanilla FL-1.0x, 1.0x",
    ]
    first = drawn["series"][0]
    assert drawn["xs"][first["x"][0]] == [1, 2]
    assert (first["y"], first["low"], first["high"]) == ([55, 65], [50, 60], [60, 70])


def test_accuracy_is_drawn_against_what_was_spent(paper_runs, tmp_path):
    drawn = read(paper_runs, tmp_path).json("slimfl-plots")["accuracy-cost-1"]
    labels = [axis["label"] for axis in drawn["x"]]
    assert labels == [
        "transmit energy so far, J",
        "airtime so far, s",
        "data sent so far, MB",
        "virtual time so far, s",
        "energy of computing and sending so far, J",
    ]
    slim, _, half, _ = ([drawn["xs"][i] for i in line["x"]] for line in drawn["series"])
    # per round: 0.25 J, 0.5 s, 8 + 16 Mbit of SlimFL; 0.1 J and 8 Mbit of Vanilla FL-0.5x
    # two devices send side by side, so a round lasts 0.25 s; these runs counted no computing
    assert slim == [[0.25, 0.5], [0.5, 1.0], [3.0, 6.0], [0.25, 0.5], [0.25, 0.5]]
    assert half == [[0.1, 0.2], [0.5, 1.0], [1.0, 2.0], [0.25, 0.5], [0.1, 0.2]]


def test_losses_are_drawn_where_there_are_any(make_run, tmp_path):
    assert "losses" not in [a.get("id") for _, a in read([make_run()], tmp_path).elements], (
        "no section without a plot"
    )
    losses = {"loss": {"0.5x": 2.0, "1.0x": None}, "training_loss": {"0.5x": 1.5, "1.0x": 1.25}}
    run = make_run(seed=1, **losses)
    plots = read([run], tmp_path).json("slimfl-plots")
    assert [line["name"] for line in plots["loss-2"]["series"]] == ["SlimFL, 0.5x"], "not a None"
    assert [line["y"] for line in plots["training-loss-3"]["series"]] == [[1.5] * 2, [1.25] * 2]


def test_settings_share_the_axis_of_values(make_run, tmp_path):
    poor = make_run(curves={"1.0x": [0.2, 0.3]}, energy_j=1.0)
    good = make_run(
        name="b", curves={"1.0x": [0.8, 0.9]}, energy_j=3.0, experiment={"radio__channel": "good"}
    )
    plots = read([poor, good], tmp_path).json("slimfl-plots")
    for kind, low, high in (("accuracy", 20, 90), ("bits", 0, 4)):
        ranges = [p["range"] for key, p in plots.items() if key.rpartition("-")[0] == kind]
        assert len(ranges) == 2
        assert ranges[0] == ranges[1]
        assert ranges[0][0] <= low < high <= ranges[0][1]


def test_several_settings_begin_with_a_table_of_them(make_run, tmp_path):
    def pair(number, channel, ours, theirs):
        keys = {"radio__channel": channel}
        return [
            make_run(method, seed, {"1.0x": [value]}, f"{method}-{number}-{seed}", keys)
            for method, values in (("slimfl", ours), ("vanilla-1.0x", theirs))
            for seed, value in enumerate(values)
        ]

    poor = pair(0, "poor", [0.9, 0.9], [0.8, 0.798])
    assert 'id="overview-table"' not in write_report(poor, tmp_path / "one.html").read_text()
    good = pair(1, "good", [0.8, 0.9], [0.8, 0.88])
    path = write_report([*poor, *good], tmp_path / "two.html")
    text = path.read_text()
    assert text.index('id="overview-table"') < text.index('id="closing-table"')
    rows = re.findall(r'<tr data-scene="([^"]*)">.*?<td data-key="best.1.0x">(.*?)</td>', text)
    assert rows == [
        ("poor channel", "SlimFL 90.0 % (+10.1)"),
        ("good channel", "not told apart: SlimFL 85.0 %, Vanilla FL-1.0x 84.0 %"),
    ]


@pytest.mark.slow
def test_a_page_of_many_long_runs_stays_below_1_mb(make_run, tmp_path):
    """Four settings of three methods under two seeds, 3,000 rounds of 200 devices each."""
    devices = 200
    runs = []
    for number in range(24):
        keys = {
            "federation__devices": devices,
            "radio__noise_dbm": -40.0 - number // 6,
            "rounds": 3000,
        }
        run = make_run(
            ("slimfl", "vanilla-0.5x", "vanilla-1.0x")[number % 3],
            number // 3 % 2,
            {"0.5x": [0.5], "1.0x": [0.7]},
            name=str(number),
            experiment=keys,
        )
        shuffled = random.Random(number)
        for i in range(3000):
            changes = {
                "round": i + 1,
                "accuracy": {w: shuffled.random() for w in ("0.5x", "1.0x")},
                "loss": {w: shuffled.random() for w in ("0.5x", "1.0x")},
                "training_loss": {w: shuffled.random() for w in ("0.5x", "1.0x")},
                "devices": [*range(devices)],
                "decoded": shuffled.choices((0, 1, 2), k=devices),
            }
            run.lines.append(run.lines[0].model_copy(update=changes))
        del run.lines[0]
        runs.append(run)
    path = write_report(runs, tmp_path / "report.html")
    assert path.stat().st_size < 1_000_000
    assert "too much data to draw" in path.read_text()


def test_every_section_is_there_and_described(paper_runs, tmp_path):
    page = read(paper_runs, tmp_path)
    sections = [a["id"] for tag, a in page.elements if tag == "section"]
    links = [a["href"] for tag, a in page.elements if tag == "a"]
    assert links == [f"#{key}" for key in sections]
    figures = [a for tag, a in page.elements if a.get("class") == "plot"]
    assert all(a["role"] == "img" and a["aria-label"] for a in figures)
    assert [a["id"] for a in figures] == list(page.json("slimfl-plots"))
    kinds = [a["id"].rpartition("-")[0] for a in figures]
    assert kinds == [
        "accuracy", "accuracy-cost", *["arrivals"] * 3, "delivered", "bits", "partition",
    ]  # fmt: skip
    for words in (
        "2 seeds, preliminary",
        "Vanilla FL-1.5x",
        "ab" * 32,
        "torch 2.13.0",
        "slimfl run ",
    ):
        assert words in page.text, words


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
    assert sum(tag == "script" for tag, _ in page.elements) == 5
    plots = page.json("slimfl-plots")
    assert evil in plots["accuracy-0"]["series"][0]["name"]


def test_long_runs_are_thinned_and_the_page_says_so(make_run, tmp_path):
    run = make_run(curves={"1.0x": [0.5] * 3}, method="vanilla-1.0x")
    first = run.lines[0]
    run.lines[:] = [first.model_copy(update={"round": i + 1}) for i in range(5000)]
    page = read([run], tmp_path)
    plots = page.json("slimfl-plots")
    assert [len(xs) for xs in plots["accuracy-0"]["xs"]] == [POINTS]
    assert len(plots["accuracy-0"]["series"][0]["y"]) == POINTS
    assert {len(cells) for cells in plots["arrivals-2"]["cells"]} == {POINTS}
    assert page.json("slimfl-data")["thinned"] is True
    assert "at most 2,000 rounds" in page.text
    (row,) = page.json("slimfl-data")["summary"]["runs"]
    assert row["rounds_done"] == 5000, "the table uses all rounds"


def test_a_run_that_has_not_begun_gives_a_page(make_run, tmp_path):
    page = read([make_run(curves={})], tmp_path)
    assert "0 of 1 rounds" in page.text


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
