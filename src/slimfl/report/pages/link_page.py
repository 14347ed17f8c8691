"""`slimfl link --explore`: one page with sliders that says what a link lets through.

The page computes the paper's link by itself, for any number of segments; Python gives it tables of
other fading. Tests compare it with Python in a real browser.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.files import atomic_write
from slimfl.radio import bound, optimal_split, power_split, segment_rates
from slimfl.radio.fading import build_fading
from slimfl.radio.preference import splits_along
from slimfl.report.figures import colours
from slimfl.report.pages.page_shell import asset, charts, render

#: The most segments that the page has colours for.
MOST_SEGMENTS = 5
#: The limits of the advice, which the page takes from `slimfl.radio.bound`.
_LIMITS = ("MOST_ROUNDS", "NEGLIGIBLE", "TIE")
#: What the page's sliders stand for; everything else must be as by default.
_SLIDERS = ("noise_dbm", "power_dbm", "distance_m", "path_loss_exponent")
_ALSO = {"channel", "spectral_efficiency", "split", "bandwidth_hz", "noise_density_dbm_hz",
         "noise_figure_db", "carrier_hz", "accounting", "bits_per_parameter", "rates", "fading",
         "rician_k_db", "nakagami_m"}  # fmt: skip
#: The choices besides no fading and Rayleigh fading.
_RICIAN_K_DB, _NAKAGAMI_M = (0.0, 3.0, 6.0, 10.0, 15.0), (0.5, 2.0, 4.0, 8.0)
#: ln t at both ends of a table of fading, and its number of points.
_GRID, _POINTS = (-9.0, 5.0), 901


def write_link_page(section: RadioSection, segments: int, devices: int, path: Path) -> Path:
    """Write the page, set to this link, and return its path."""
    text = link_page_text(section, segments, devices)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def link_page_text(section: RadioSection, segments: int, devices: int) -> str:
    """The whole page as text."""
    chosen, fadings = _fadings(section)
    settings = {**_settings(section, segments, devices), "fading": chosen}
    rule = {
        "limits": {name: getattr(bound, name) for name in _LIMITS},
        "fadings": fadings,
        "grid": _GRID,
    }
    script = asset("link.js") + asset("link_page.js")
    return render(
        "page.html",
        kind="slimfl link",
        title="What does the channel let through?",
        subtitle="Move a slider: decoding probabilities, thresholds and the advice follow at once. "
        "It starts with the paper's poor channel unless the command said otherwise.",
        contents=(),
        main=render("link_page.html", fadings=fadings),
        css=asset("page.css") + _palette() + asset("link_page.css"),
        scripts=f'<script type="application/json" id="slimfl-link">{json.dumps(settings)}</script>'
        f'<script type="application/json" id="slimfl-rule">{json.dumps(rule)}</script>\n'
        f'{charts()}<script>"use strict";\nconst slimflExplorer = (() => {{\n{script}\n'
        "return { describe, preference };\n})();</script>",
    )


def _fadings(section: RadioSection) -> tuple[str, dict[str, Any]]:
    """The key of the link's own fading, and all choices: words, options, and a table of Pr(g >= t).

    A table holds ln(-ln Pr) over evenly spaced ln t; the page knows Rayleigh fading and none.
    """
    found: dict[str, Any] = {
        "none": {"words": "none: the gain never changes", "options": ["--set radio.fading=none"]},
        "rayleigh": {
            "words": "Rayleigh: scattered waves only",
            "options": ["--set radio.fading=rayleigh"],
        },
    }
    for fading, key, values, words in (
        ("rician", "rician_k_db", {*_RICIAN_K_DB, section.rician_k_db},
         "Rician: a line of sight {:g} dB over scatter"),
        ("nakagami", "nakagami_m", {*_NAKAGAMI_M, section.nakagami_m},
         "Nakagami: diversity of order {:g}"),
    ):  # fmt: skip
        for value in sorted(values):
            changed = section.model_copy(update={"fading": fading, key: value})
            with np.errstate(divide="ignore"):
                reached = build_fading(changed).survival(np.exp(np.linspace(*_GRID, _POINTS)))
                table = np.log(-np.log(np.clip(reached, 1e-300, 1 - 1e-16)))
            found[f"{fading}-{value:g}"] = {
                "words": words.format(value),
                "options": [f"--set radio.fading={fading}", f"--set radio.{key}={value:g}"],
                "table": [float(f"{each:.6g}") for each in table],
            }
    own = {"rician": section.rician_k_db, "nakagami": section.nakagami_m}.get(section.fading)
    chosen = section.fading if own is None else f"{section.fading}-{own:g}"
    if chosen not in found:
        raise RequestError(
            f"the page has no choice radio.fading={section.fading}; leave it or --explore out"
        )
    return chosen, found


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
