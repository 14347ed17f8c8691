"""`slimfl link --explore`: one page with sliders that says what a link lets through.

The page computes by itself: `link.js` has the formulas of `slimfl.radio` and `slimfl.radio.bound`,
`special.js` the functions that they need. Tests compare it with Python in a real browser.
"""

import json
from pathlib import Path

import numpy as np

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import bound, optimal_split, power_split, segment_rates
from slimfl.radio.preference import splits_along
from slimfl.report.atomic_write import atomic_write
from slimfl.report.figures import colours
from slimfl.report.pages.page_shell import asset, page_shell

#: In this order, each uses what stands before it.
_SCRIPTS = ("special", "link", "drawing", "explorer")
#: The most segments that the page has colours for.
MOST_SEGMENTS = 5
#: The limits of the advice, which the page takes from `slimfl.radio.bound`.
_LIMITS = ("MOST_ROUNDS", "NEGLIGIBLE", "TIE")
#: What the page's sliders stand for; everything else must be as by default.
_SLIDERS = ("noise_dbm", "power_dbm", "distance_m", "path_loss_exponent", "fading", "rician_k_db",
            "nakagami_m")  # fmt: skip
_ALSO = {"channel", "spectral_efficiency", "split", "bandwidth_hz", "noise_density_dbm_hz",
         "noise_figure_db", "carrier_hz", "accounting", "bits_per_parameter", "rates"}  # fmt: skip


def write_explorer(section: RadioSection, segments: int, devices: int, path: Path) -> Path:
    """Write the page, set to this link, and return its path."""
    text = explorer_page(section, segments, devices)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def explorer_page(section: RadioSection, segments: int, devices: int) -> str:
    """The whole page as text."""
    settings = _settings(section, segments, devices)
    scripts = "\n".join(asset(__name__, f"{name}.js") for name in _SCRIPTS)
    data = json.dumps(settings, allow_nan=False)
    rule = json.dumps({name: getattr(bound, name) for name in _LIMITS})
    return page_shell(
        kind="slimfl link",
        title="What does the channel let through?",
        subtitle="Move a slider: decoding probabilities, thresholds and the advice follow at once. "
        "It starts with the paper's poor channel unless the command said otherwise.",
        contents=(),
        main=asset(__name__, "explorer.html"),
        css=_palette() + asset(__name__, "explorer.css"),
        scripts=f'<script type="application/json" id="slimfl-link">{data}</script>'
        f'<script type="application/json" id="slimfl-rule">{rule}</script>'
        '<script>"use strict";\nconst slimflExplorer = (() => {\n'
        f"{scripts}\nreturn {{ describe, preference, gammaQ, marcumQ }};\n}})();</script>",
    )


def _settings(section: RadioSection, segments: int, devices: int) -> dict[str, float | str]:
    """Where the sliders stand at first."""
    if segments > MOST_SEGMENTS:
        raise RequestError(
            f"the page has at most {MOST_SEGMENTS} segments, and this link has {segments}; "
            "leave out --explore or give fewer"
        )
    usual = RadioSection()
    for key in RadioSection.model_fields:
        if key not in (*_SLIDERS, *_ALSO) and getattr(section, key) != getattr(usual, key):
            raise RequestError(
                f"the page has no slider for radio.{key}; leave it out, or leave out --explore"
            )
    rates = segment_rates(section, segments)
    if len(set(rates)) > 1:
        raise RequestError(
            "the page has one rate for all segments; give one --spectral-efficiency, or leave out "
            "--explore"
        )
    split = power_split(section, rates)
    is_optimal = split == optimal_split(rates)
    if (
        segments > 2
        and not is_optimal
        and not np.allclose(split, splits_along(rates, np.array(split[:1]))[0], rtol=0, atol=1e-6)
    ):
        raise RequestError(
            "the page divides what segment 1 leaves of the power as the optimal split does; "
            "give --split optimal, or leave out --explore"
        )
    values = {key: getattr(section, key) for key in _SLIDERS}
    return values | {
        "noise_dbm": section.noise,
        "rate": rates[0],
        "segments": segments,
        "devices": devices,
        "split": "optimal" if is_optimal else "share",
        "share": split[0] if segments > 1 else 0.8,
    }


def _palette() -> str:
    """The project's colours on a light and on a dark screen."""
    named = {"slimfl": colours.BLUE, "first": colours.SKY}
    others = [colour for colour in colours.METHODS if colour != colours.SKY]
    named |= {f"vanilla-{i}": colour for i, colour in enumerate(others)}
    light, dark = (
        "".join(f"--{name}:{colours.on_screen(colour)[screen]};" for name, colour in named.items())
        for screen in (0, 1)
    )
    return f":root{{{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"
