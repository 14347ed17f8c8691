"""What superposition can gain, from the library's own formulas."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from convergence import table
from two_modes import save

from slimfl.radio.gain import best_gain, ceiling, most_favourable_snr, price_of_a_safer_base_db

#: Bits of the base as a share of the model's, with their names.
SHARES = {1 / 2: "1/2", 1 / 3: "1/3", 1 / 4: "1/4", 1 / 8: "1/8", 1 / 16: "1/16"}
WORTH = (0.5, 0.6, 0.7, 0.8, 0.9)
RATE = 3.0


def texts() -> dict[str, str]:
    """The largest gains, and the price of a safer base."""
    rows = []
    for share, name in SHARES.items():
        rates = (RATE * share, RATE * (1 - share))
        best = [
            best_gain(most_favourable_snr(rates, worth), rates, (worth, 1)).share for worth in WORTH
        ]
        rows.append(
            [
                name,
                *(f"{each:.1%}" for each in best),
                f"{price_of_a_safer_base_db(rates, 2):.2f} dB",
            ]
        )
    rows.append(["ceiling", *(f"{ceiling((worth, 1)) - 1:.0%}" for worth in WORTH), ""])
    headings = ["bits of the base", *(f"worth {worth:g}" for worth in WORTH), "half the threshold"]
    return {"superposition-gains": table(headings, rows)}


def draw(folder: Path) -> None:
    """The gain over the SNR, for three rates."""
    figure, panels = plt.subplots(1, 3, figsize=(7.2, 2.7), sharey=True, constrained_layout=True)
    snr_db = np.linspace(0, 32, 161)
    for ax, rate in zip(panels, (1.5, 3.0, 6.0), strict=True):
        for share in (1 / 2, 1 / 3, 1 / 8):
            rates = (rate * share, rate * (1 - share))
            gains = [two_segments(10 ** (each / 10), rates, 0.8) for each in snr_db]
            ax.plot(snr_db, np.array(gains) * 100, label=f"base of {SHARES[share]}")
        ax.axhline((ceiling((0.8, 1)) - 1) * 100, ls=":", color="0.5")
        ax.set(title=f"{rate:g} bit/s/Hz", xlabel="mean SNR, dB")
    panels[0].set(ylabel="gain over the better\nsingle message, %", ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=8)
    save(figure, folder / "superposition-gain.svg")
    plt.close(figure)


def two_segments(snr: float, rates: tuple[float, float], worth: float) -> float:
    """The gain, by the power identity: the first threshold determines the second."""
    low, all_of = 2 ** rates[0] - 1, 2 ** sum(rates) - 1
    first = np.linspace(low, all_of, 4001)[1:] / snr
    second = (all_of - low) / (snr - low / first)
    superposed = (worth * np.exp(-first) + (1 - worth) * np.exp(-second)).max()
    single = max(worth * np.exp(-low / snr), np.exp(-all_of / snr))
    return float(max(superposed / single - 1, 0))
