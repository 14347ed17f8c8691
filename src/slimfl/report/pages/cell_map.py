"""A map of the cell as SVG: every device, coloured by how often it was heard."""

from html import escape

import numpy as np

from slimfl.report.figures import colours
from slimfl.results.devices import delivery
from slimfl.results.groups import Group

#: More devices than this are thinned evenly.
MOST_POINTS = 2_000

SIZE = 320


def cell_map(group: Group) -> str:
    """The map of a group's first seed; empty if all devices are identical."""
    run = group.runs[0]
    devices = run.devices
    if devices is None or not run.lines:
        return ""
    told = delivery(run.lines, len(devices))
    rows = np.linspace(0, len(devices) - 1, min(len(devices), MOST_POINTS)).astype(np.int64)
    shown, shares = devices.take(rows), told.share[rows]
    reach = max(float(np.abs([shown.x_m, shown.y_m]).max()), 1e-9)
    scale = (SIZE / 2 - 12) / reach
    full = len(run.experiment.model.widths) - 1
    points = "".join(
        _point(
            SIZE / 2 + x * scale,
            SIZE / 2 - y * scale,
            share,
            f"device {device.id}, {device.device_class}, {device.distance_m:.0f} m, "
            + ("never asked" if share != share else f"heard in {100 * share:.0f}% of rounds"),
            is_full=device.max_width == full,
        )
        for device, x, y, share in zip(
            shown, shown.x_m.tolist(), shown.y_m.tolist(), shares.tolist(), strict=True
        )
    )
    name = f"{group.name}, {group.scene}, seed {run.experiment.seed}"
    label = f"Where the devices are and how often each was heard: {name}"
    middle = SIZE / 2
    return (
        f"<figure class='cell-map'><svg viewBox='0 0 {SIZE} {SIZE}' width='{SIZE}' height='{SIZE}' "
        f"role='img' aria-label=\"{escape(label)}\">"
        f"<circle cx='{middle}' cy='{middle}' r='{middle - 12}' fill='none' stroke='#8C8C8C' "
        f"stroke-dasharray='3 4'/><path d='M{middle - 6} {middle}h12M{middle} {middle - 6}v12' "
        f"stroke='currentColor'/>{points}</svg>"
        f"<figcaption>{escape(name)}: {colours_words()}; the ring is at {reach:.0f} m."
        "</figcaption></figure>"
    )


def colours_words() -> str:
    """The legend of colours and shapes."""
    return (
        "blue devices were always heard, orange ones never; circles can train all widths, squares "
        "cannot"
    )


def _point(x: float, y: float, share: float, words: str, *, is_full: bool) -> str:
    paint = f"fill='{colours.delivery(share)}' stroke='#5b6670' stroke-width='.6'"
    shape = (
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' {paint}>"
        if is_full
        else f"<rect x='{x - 3.5:.1f}' y='{y - 3.5:.1f}' width='7' height='7' {paint}>"
    )
    return f"{shape}<title>{escape(words)}</title></{'circle' if is_full else 'rect'}>"
