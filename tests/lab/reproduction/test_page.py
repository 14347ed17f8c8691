"""The page agrees with the results: in its numbers, its verdicts and its sentences."""

import base64
import re
from copy import deepcopy
from html.parser import HTMLParser

import pytest

from lab.reproduction.cells.scale import SCALES
from lab.reproduction.exhibits import RECIPES
from lab.reproduction.judging.verdict import RULE
from lab.reproduction.page import printed
from lab.reproduction.page.document import write_page
from lab.reproduction.page.findings import LEARNED_PERCENT, THEORY, findings
from slimfl.errors import RequestError

# the smallest picture there is: one grey point
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
NEVER = object()


def comparison(quantity, ours, deviation=0.0, *, unit="%", paper=None, spread=0.0, **changes):
    return {
        "quantity": quantity,
        "unit": unit,
        "paper": paper,
        "paper_deviation": None if paper is None else spread,
        "ours": None if ours is NEVER else ours,
        "reached": ours is not NEVER,
        "ours_deviation": deviation,
        "seeds": 3,
        "digits": 0,
        **changes,
    }


def claim(text, *comparisons, verdict="agrees", source="table III", about=None):
    subject = {"about": dict(zip(("measure", "channel", "alpha"), about or (), strict=False))}
    return {
        "text": text,
        "source": source,
        "verdict": verdict,
        "comparisons": list(comparisons),
        **(subject if about else {}),
    }


def exhibit(name, *claims, verdict="agrees", **changes):
    return {
        "name": name,
        "title": f"{name.capitalize()}: something",
        "paper": f"What the paper says of {name}.",
        "verdict": verdict,
        "table": {"headings": ["method", "accuracy"], "rows": [["SlimFL", "65.0 ± 1.0"]]},
        "claims": list(claims),
        "notes": [],
        "figures": [],
        **changes,
    }


def document(*exhibits, **changes):
    return {
        "scale": "small",
        "command": "python -m lab reproduce all --scale small",
        "shortened": "Shortened against the paper: rounds (40; the paper 1,000).",
        "versions": {"python": "3.11.7", "slimfl": "0.1.0"},
        "engine": "native (avx2)",
        "seeds": [0, 1, 2],
        "rule": RULE,
        "exhibits": list(exhibits),
        **changes,
    }


def accuracy_claim(slim, vanilla, deviation=1.0, channel="poor", alpha="0.1", width="1.0x"):
    return claim(
        f"Accuracy on the {channel} channel at alpha = {alpha}",
        comparison(f"SlimFL-{width}", slim, deviation),
        comparison(f"Vanilla FL-{width}", vanilla, deviation),
        about=("accuracy", channel, float(alpha)),
    )


class Page(HTMLParser):
    """Elements with their attributes, and the text, with spaces as a person reads them."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.text = ""
        self.feed(text)
        self.text = re.sub(r"\s+", " ", self.text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def written(results, tmp_path):
    path = write_page(results, tmp_path)
    assert path == tmp_path / "index.html"
    return Page(path.read_text(encoding="utf-8"))


def said(found):
    """Every sentence of a list with its settings."""
    return [" ".join((each.text, *each.cases)) for each in found]


def test_every_claim_number_and_verdict_is_there(tmp_path):
    results = document(
        exhibit(
            "table3",
            claim(
                "Accuracy on the poor channel at alpha = 0.1",
                comparison("SlimFL-1.0x", 64.21, 1.34, paper=65, spread=2.9),
                comparison("Vanilla FL-1.0x", 55.0, 2.0, paper=55, spread=9.2, seeds=1),
                verdict="agrees in order only",
                source="table III, poor",
            ),
            claim(
                "Bits",
                comparison("1.0x", 146752, unit="", paper=172688, seeds=1),
                comparison("0.5x", 57.437, 0.817, unit="MB", paper=57.44, spread=0.82, digits=2),
                verdict="differs",
            ),
            claim(
                "Cost",
                comparison("SlimFL", NEVER, unit="W", paper=71.0, digits=1),
                comparison("Vanilla FL-1.5x", None, unit="W"),
                verdict="undecided",
            ),
            verdict="differs",
            notes=["Set `radio.accounting` so.", "Shortened against the paper: rounds"],
        ),
        exhibit("choices", verdict="no claim"),
    )
    page = written(results, tmp_path)
    for one in results["exhibits"]:
        assert one["title"] in page.text
        assert one["paper"] in page.text
        for each in one["claims"]:
            assert f"{each['text']} {each['source']}" in page.text
    for row in (
        "SlimFL-1.0x65 ± 2.9 %64.2 ± 1.3 % (3 seeds)",
        "Vanilla FL-1.0x55 ± 9.2 %55.0 ± 2.0 % (1 seed)",
        "1.0x172,688146,752",
        "0.5x57.44 ± 0.82 MB57.44 ± 0.82 MB (3 seeds)",
        "SlimFL71.0 Wnot under every seed",
        "Vanilla FL-1.5xno numbernot run",
    ):
        assert row in page.text, row
    for words in ("✓ agrees", "◐ agrees in order only", "✗ differs", "? undecided", "○ not run"):
        shown = words.split(" ", 1)[1] in ("agrees in order only", "differs", "undecided")
        assert (words in page.text) == shown, words
    assert "These runs are shortened against the paper: rounds (40; the paper 1,000)." in page.text
    for words in (
        RULE,
        "python -m lab reproduce all --scale small",
        "0, 1, 2",
        "slimfl 0.1.0",
        "avx2",
    ):
        assert words in page.text
    raw = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Set <code>radio.accounting</code> so." in raw
    choices = raw[raw.index('<section id="choices"') :]
    assert "badge" not in choices[: choices.index("</section>")]


def test_what_is_not_shortened_is_no_warning(tmp_path):
    page = written(document(exhibit("table1"), shortened="Nothing is shortened: 3."), tmp_path)
    assert "Nothing is shortened: 3." in page.text
    assert "These runs are shortened" not in page.text


def test_text_from_the_results_runs_nothing(tmp_path):
    evil = "<script>alert('`1`')</script>\"'><img src=x onerror=alert(2)>"
    harmless = document(exhibit("table3", claim("Accuracy", comparison("a", 1.0), source="x")))
    results = document(
        exhibit(
            "fig2",
            claim(evil, comparison(evil, 1.0, unit=evil), source=evil),
            title=evil,
            paper=evil,
            notes=[evil],
            figures=["figures/fig2.png"],
            table={"headings": [evil, evil], "rows": [[evil, evil]]},
        ),
        **dict.fromkeys(("scale", "command", "shortened", "rule", "engine"), evil),
        versions={evil: evil},
    )
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "fig2.png").write_bytes(PIXEL)
    page = written(results, tmp_path)
    tags = {tag for tag, _ in page.elements}
    assert tags <= {tag for tag, _ in written(harmless, tmp_path).elements} | {
        "figure", "img", "code"
    }  # fmt: skip
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    (image,) = page.all("img")
    assert evil in image["alt"]


def test_the_page_loads_nothing_and_has_its_figures(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "fig7.png").write_bytes(PIXEL)
    judged = claim("It falls", comparison("a", 1.0), verdict="differs")
    page = written(
        document(exhibit("fig7", judged, verdict="differs", figures=["figures/fig7.png"])), tmp_path
    )
    (image,) = page.all("img")
    kind, _, data = image["src"].partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == PIXEL
    for words in ("fig7: something", "SlimFL", "accuracy", "1 differs"):
        assert words in image["alt"]
    for tag, attributes in page.elements:
        assert tag not in ("script", "link", "iframe", "object", "embed", "base", "form")
        assert (attributes.get("href") or "#").startswith("#")
    raw = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", raw)
    assert "@import" not in raw
    assert "url(" not in raw
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def test_a_lost_figure_is_named(tmp_path):
    with pytest.raises(
        RequestError, match=r"fig7\.png cannot be read .*; run python -m lab reproduce"
    ):
        write_page(document(exhibit("fig7", figures=["figures/fig7.png"])), tmp_path)


def test_headings_captions_and_links_lead_through_the_page(tmp_path):
    page = written(document(exhibit("table1"), exhibit("table3")), tmp_path)
    assert len(page.all("h1")) == 1
    keys = {attributes["id"] for attributes in page.all("section")}
    assert {"slimfl", "result", "table1", "table3", "made"} == keys
    assert {attributes["href"] for attributes in page.all("a")} == {f"#{key}" for key in keys}
    assert len(page.all("caption")) == len(page.all("table"))
    assert "Table1: agrees" in page.text  # the sign in the contents is also heard


# three columns by hand: 10 points with deviations of 1, 1 point with deviations of 1, -5 points
@pytest.mark.parametrize(
    ("slim", "vanilla", "place", "words"),
    [
        (65.0, 55.0, "good_for", "SlimFL-1.0x is ahead of Vanilla FL-1.0x"),
        (65.0, 64.0, "ties", "SlimFL-1.0x ties with Vanilla FL-1.0x"),
        (60.0, 65.0, "not_for", "SlimFL-1.0x is behind Vanilla FL-1.0x"),
    ],
)
def test_who_is_ahead_follows_the_numbers(slim, vanilla, place, words, tmp_path):
    results = document(exhibit("table3", accuracy_claim(slim, vanilla)))
    found = findings(results)
    (sentence,) = said(getattr(found, place))
    assert words in sentence
    assert "poor channel, very uneven data (α = 0.1)" in sentence
    assert f"{slim:.1f} ± 1.0 against {vanilla:.1f} ± 1.0 %" in sentence
    assert ("points)" in sentence) == (place != "ties")
    for other in {"good_for", "ties", "not_for"} - {place}:
        assert getattr(found, other) == []
    page = written(results, tmp_path)
    assert words in page.text
    others = {"is ahead of", "ties with", "is behind"} - {words.split("x ", 1)[1].rsplit(" V")[0]}
    assert not any(each in page.text for each in others)


def test_a_tie_ends_at_the_combined_deviation():
    # sqrt(3^2 + 4^2) = 5
    def place(gap):
        both = (
            comparison("SlimFL-0.5x", 50 + gap, 3.0),
            comparison("Vanilla FL-0.5x", 50.0, 4.0),
        )
        column = claim("Accuracy", *both, about=("accuracy", "good", 10.0))
        found = findings(document(exhibit("table3", column)))
        return next(k for k in ("good_for", "ties", "not_for") if getattr(found, k))

    assert [place(gap) for gap in (5.1, 5.0, -5.0, -5.1)] == ["good_for", "ties", "ties", "not_for"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (accuracy_claim(None, 55.0), "not run"),
        (accuracy_claim(LEARNED_PERCENT - 1, LEARNED_PERCENT - 9), "neither network had learned"),
    ],
)
def test_what_was_not_run_or_not_learned_decides_nothing(column, words, tmp_path):
    results = document(exhibit("table3", column))
    found = findings(results)
    assert found.good_for == found.not_for == found.ties == []
    assert words in said(found.unknown)[0]
    assert words.split()[-1] in written(results, tmp_path).text


def test_one_seed_tells_nothing_of_the_spread():
    column = accuracy_claim(65.0, 55.0)
    column["comparisons"][1]["seeds"] = 1
    found = findings(document(exhibit("table3", column)))
    assert found.good_for == []
    assert "one seed" in said(found.unknown)[0]


def test_a_lead_over_a_network_that_has_not_learned_is_a_lead():
    found = findings(document(exhibit("table3", accuracy_claim(60.0, 10.0))))
    assert len(found.good_for) == 1


def test_settings_are_counted_by_outcome():
    columns = [
        accuracy_claim(65.0, 55.0, channel="poor"),
        accuracy_claim(65.0, 55.0, alpha="1"),
        accuracy_claim(65.0, 65.5, channel="good"),
        accuracy_claim(None, None, channel="good", alpha="10"),
    ]
    (tally,) = findings(document(exhibit("table3", *columns))).tallies
    assert tally.endswith("4 settings: ahead in 2, a tie in 1, not run in 1.")


def test_fluctuation_is_judged_where_networks_learned():
    moves = claim(
        "On the poor channel at alpha = 0.1 both widths of SlimFL fluctuate less",
        comparison("SlimFL-1.0x", 2.0, 0.3, unit="points"),
        comparison("Vanilla FL-1.0x", 8.0, 0.4, unit="points"),
        about=("fluctuation", "poor", 0.1),
    )
    steady = findings(document(exhibit("table3", accuracy_claim(65, 65), moves)))
    (sentence,) = said(steady.good_for)
    assert "moves less from round to round" in sentence
    assert "2.0 ± 0.3 against 8.0 ± 0.4 points (4.0 times less)" in sentence
    flat = findings(document(exhibit("table3", accuracy_claim(10, 10), moves)))
    assert flat.good_for == []
    alone = findings(document(exhibit("fig7", moves)))
    assert alone.good_for == []


@pytest.mark.parametrize(
    ("slim", "every", "place", "words"),
    [
        (8.5, 15.8, "good_for", "8.50 ± 0.10 against 15.80 ± 0.10 W (1.9 times less)"),
        (16.0, 15.8, "not_for", "16.00 ± 0.10 against 15.80 ± 0.10 W"),
        (15.9, 15.8, "ties", "15.90 ± 0.10 against 15.80 ± 0.10 W"),
        (8.5, NEVER, "good_for", "8.50 ± 0.10 W against not under every seed"),
        (NEVER, 15.8, "not_for", "not under every seed against 15.80 ± 0.10 W"),
        (NEVER, NEVER, "unknown", "neither converged"),
    ],
)
def test_costs_until_convergence(slim, every, place, words):
    cost = claim(
        "Communication until convergence, good channel, alpha = 1",
        comparison("SlimFL", slim, 0.1, unit="W"),
        comparison("Vanilla FL-1.5x", every, 0.1, unit="W"),
        about=("transmit power until convergence", "good", 1.0),
    )
    found = findings(document(exhibit("table7", cost)))
    assert words in said(getattr(found, place))[0]
    rest = {"good_for", "not_for", "ties"} - {place}
    assert all(getattr(found, other) == [] for other in rest)


def test_a_cost_that_only_some_seeds_reached_makes_nobody_better():
    cost = claim(
        "Communication until convergence, good channel, alpha = 1",
        comparison("SlimFL", 8.5, 0.1, unit="W"),
        comparison("Vanilla FL-1.5x", NEVER, 0.1, unit="W") | {"seeds_reached": 2},
        about=("transmit power until convergence", "good", 1.0),
    )
    found = findings(document(exhibit("table7", cost)))
    assert found.good_for == found.not_for == found.ties == []
    assert "one converged only with some seeds" in said(found.unknown)[0]


def test_sentences_read_the_real_exhibits():
    """The claims' words and the quantities' names are those that the exhibits really have."""
    names = ("table3", "table4", "table5", "table6", "table7", "fig7")
    shown = [
        RECIPES[name].show(SCALES["smoke"], {}).as_json() | {"figures": []} for name in names
    ]  # fmt: skip
    found = findings(document(*shown))
    good, bad, ties = said(found.good_for), said(found.not_for), said(found.ties)
    assert any("less transmit power" in s and "199.5 against 399.1 mW (2.0" in s for s in good)
    assert any("Less is lost" in s and "poor channel: " in s for s in good)
    assert any("only one width" in s and "4.03 against 3.09 million" in s for s in bad)
    assert any("Fewer whole models" in s and "poor channel: " in s for s in bad)
    assert any("As much computing per round" in s for s in ties)
    unknown = " ".join(said(found.unknown))
    for subject, settings in (
        ("Accuracy of SlimFL-1.0x against Vanilla FL-1.0x", 6),
        ("Accuracy of SlimFL-0.5x against Vanilla FL-0.5x", 6),
        ("Fluctuation of SlimFL-1.0x against Vanilla FL-1.0x", 2),
        ("Communication until convergence", 6),
        ("Computing until convergence", 6),
    ):
        assert f"{subject}: not run, in any of {settings} settings" in unknown

    # filled with the paper's numbers, the columns say what the paper says
    papers = deepcopy(shown)
    for each in papers[0]["claims"][:6]:
        for one in each["comparisons"]:
            one |= {"ours": one["paper"], "ours_deviation": one["paper_deviation"], "seeds": 3}
    found = findings(document(*papers))
    assert found.tallies == [
        "Accuracy of SlimFL-1.0x against Vanilla FL-1.0x, 6 settings: ahead in 2, a tie in 3, "
        "behind in 1.",
        "Accuracy of SlimFL-0.5x against Vanilla FL-0.5x, 6 settings: ahead in 2, a tie in 4.",
    ]


def test_what_is_not_on_the_page_and_what_theory_says_are_told(tmp_path):
    page = written(document(exhibit("table1")), tmp_path)
    assert "Not part of this page" in page.text
    assert "accuracy and how much it fluctuates (table III)" in page.text
    assert "In theory, regardless of the runs" in page.text
    for sentence in THEORY:
        assert sentence in page.text


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (comparison("a", 0.69070338, 0.0087, unit=""), "0.691 ± 0.009"),
        (comparison("a", 132.0849, unit="", digits=1, seeds=1), "132.1"),
        (comparison("a", 288, unit="", seeds=1), "288"),
        (comparison("a", -0.04, 0.0, unit="%"), "0.0 ± 0.0 %"),
        (comparison("a", 1.436, unit="", digits=3, seeds=1), "1.436"),
        (comparison("a", 2.5, unit="", seeds=1), "2.50"),
    ],
)
def test_our_digits(one, shown):
    assert printed.ours(one) == shown


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (comparison("a", 1, paper=6.4), "6.4 %"),
        (comparison("a", 1, paper=3.5871, digits=1, unit=""), "3.6"),
        (comparison("a", 1, paper=57.44, spread=0.8171, digits=2, unit="MB"), "57.44 ± 0.82 MB"),
        (comparison("a", 1), None),
    ],
)
def test_the_papers_digits(one, shown):
    assert printed.papers(one) == shown


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(browser, tmp_path, width, scheme):
    shown = [
        RECIPES[name].show(SCALES["smoke"], {}) for name in ("table1", "table3", "table6", "fig4")
    ]
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "fig4.png").write_bytes(PIXEL)
    results = document(
        *(each.as_json() | {"figures": ["figures/fig4.png"] * bool(each.figure)} for each in shown)
    )
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(write_page(results, tmp_path).as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    for each in shown:
        part = browser.find_element("id", each.name)
        assert part.is_displayed()
        assert part.size["height"] > 100
        assert each.title in part.text
        for one in each.claims:
            assert one.text in part.text
            assert str(one.verdict) in part.text
    # what is wider than the screen scrolls inside its own box
    boxes = browser.find_elements("css selector", ".scroll")
    assert all(box.rect["x"] + box.rect["width"] <= width for box in boxes)
    assert browser.execute_script("return document.images[0].naturalWidth") == 1
    assert browser.execute_script(CONTRAST) == []


#: Text that stands out too little from its ground (less than 4.5 to 1), by what it says.
CONTRAST = """
const rgb = text => text.match(/[\\d.]+/g).map(Number);
const light = text => {
  const [r, g, b] = rgb(text).map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = node => {
  for (; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor;
    if (rgb(colour)[3] !== 0) return colour;
  }
};
const faint = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some(c => c.nodeType === 3 && c.textContent.trim());
  if (!own) continue;
  const both = [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a);
  if ((both[0] + 0.05) / (both[1] + 0.05) < 4.5) faint.push(node.textContent);
}
return faint;
"""
