"""`slimfl link --waveform`: symbols, table and formula side by side, and the gap that fits."""

from typing import Any

import numpy as np

from slimfl.cli.output import Reply, table
from slimfl.errors import RequestError
from slimfl.experiment import RadioSection
from slimfl.radio import Superposition, signal
from slimfl.radio.waveform.code import CRC_BITS, Modem, code_of
from slimfl.radio.waveform.comparison import Comparison, compare
from slimfl.radio.waveform.sionna_blocks import require_sionna

#: What is compared: mean ratios P/c, shares of segment 1, and coded bits per symbol.
SNR_DB = (8.0, 12.0, 16.0, 20.0)
SHARES = (0.7, 0.8, 0.9)
MODULATIONS = (2, 4)
#: Code blocks are short and links few, or it would take an hour.
BLOCK_BITS, MOST_DRAWS = 512, 200


def compared(section: RadioSection, segments: int, draws: int, seed: int) -> Reply:
    """Compare at the rate and the split that the options give, or at three splits of two.

    Args:
        section: The radio.
        segments: How many there are.
        draws: Links per point, at most `MOST_DRAWS`.
        seed: Of the gains and the noise.
    """
    require_sionna()
    rate = section.spectral_efficiency
    if isinstance(rate, tuple):
        raise RequestError("--waveform compares segments of one rate; give --spectral-efficiency 1")
    splits = _splits(section, rate, segments)
    modems = [Modem(bits, BLOCK_BITS, section.decoder_iterations) for bits in MODULATIONS]
    documents = [
        _document(compare(modem, rate, splits, SNR_DB, min(draws, MOST_DRAWS), seed))
        for modem in _with_a_code(modems, rate)
    ]
    shown = [part for document in documents for part in _words(document)]
    return Reply({"waveform": documents}, shown)


def _with_a_code(modems: list[Modem], rate: float) -> list[Modem]:
    """Those that have a code for the rate; refused where none has."""
    able, reasons = [], []
    for modem in modems:
        try:
            code_of(modem, modem.block_bits - CRC_BITS, rate)
            able.append(modem)
        except RequestError as error:
            reasons.append(error)
    if not able:
        raise reasons[-1]
    return able


def _splits(section: RadioSection, rate: float, segments: int) -> list[tuple[float, ...]]:
    if segments != 2 or section.split is not None:
        return [signal(section, tuple((i,) for i in range(segments)), segments).coding.split]
    splits: list[tuple[float, ...]] = []
    for share in SHARES:
        split = (share, round(1 - share, 9))
        try:
            Superposition((rate, rate), split)
        except RequestError:
            continue  # drowns by the formula already
        splits.append(split)
    if not splits:
        raise RequestError(
            f"none of the shares {', '.join(map(str, SHARES))} can be decoded at {rate:g} "
            "bit/s/Hz; give --split or a lower --spectral-efficiency"
        )
    return splits


def _document(found: Comparison) -> dict[str, Any]:
    gap_db, noise_db = found.fitted_gap_db(), found.fitted_noise_db()
    fitted = found.with_gap(gap_db)
    columns = {"symbols": found.symbols, "table": found.table, "formula": found.formula,
               "with_gap": fitted}  # fmt: skip
    points = [
        {
            "split": list(found.splits[i]),
            "snr_db": found.snr_db[j],
            "segment": message + 1,
            **{name: float(values[i, j, message]) for name, values in columns.items()},
        }
        for i, j, message in np.ndindex(found.symbols.shape)
    ]
    binomial = np.sqrt(found.table * (1 - found.table) / found.draws)
    off = np.abs(found.table - found.symbols)
    return {
        "bits_per_symbol": found.modem.bits_per_symbol,
        "code_rate": found.code_rate,
        "spectral_efficiency": found.spectral_efficiency,
        "block_bits": found.modem.block_bits,
        "links_per_point": found.draws,
        "sinr_gap_db": gap_db,
        "worst_with_gap": float(np.abs(fitted - found.symbols).max()),
        "implementation_loss_db": noise_db,
        "worst_with_loss": float(np.abs(found.with_noise(noise_db) - found.symbols).max()),
        "worst_of_table": float(off.max()),
        "worst_of_table_in_binomial_errors": float(
            (off / np.maximum(binomial, 1 / found.draws)).max()
        ),
        "altered_bits": found.altered_bits,
        "points": points,
    }


def _words(document: dict[str, Any]) -> list[Any]:
    rows = [
        {
            "split": ", ".join(f"{share:g}" for share in point["split"]),
            "P/c, dB": point["snr_db"],
            "segment": point["segment"],
            **{
                key.replace("_", " "): f"{point[key]:.3f}"
                for key in ("symbols", "table", "formula", "with_gap")
            },
        }
        for point in document["points"]
    ]
    title = (
        f"{2 ** document['bits_per_symbol']}-QAM at code rate {document['code_rate']:.3f}, "
        f"{document['spectral_efficiency']:g} bit/s/Hz, {document['links_per_point']} links each"
    )
    fits = (
        f"One SINR gap of {document['sinr_gap_db']:.2f} dB fits all to within "
        f"{document['worst_with_gap']:.3f}; a loss on the noise alone "
        f"({document['implementation_loss_db']:.2f} dB) to within "
        f"{document['worst_with_loss']:.3f}. The table is within "
        f"{document['worst_of_table']:.3f} of symbols "
        f"({document['worst_of_table_in_binomial_errors']:.1f} binomial errors). "
        f"Bits that arrived other than sent: {document['altered_bits']}."
    )
    return [table(rows, title), fits]
