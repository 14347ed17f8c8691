"""`slimfl link --waveform`: symbols, table and formula side by side, and the gap that fits."""

from typing import TYPE_CHECKING, Any

from slimfl.cli.output import show, show_json, table

if TYPE_CHECKING:
    from slimfl.experiment import RadioSection
    from slimfl.radio.waveform.code import Modem
    from slimfl.radio.waveform.comparison import Comparison

#: What is compared: mean ratios P/c, shares of segment 1, and coded bits per symbol.
SNR_DB = (8.0, 12.0, 16.0, 20.0)
SHARES = (0.7, 0.8, 0.9)
MODULATIONS = (2, 4)
#: Code blocks are short and links few, or it would take an hour.
BLOCK_BITS, MOST_DRAWS = 512, 200


def compare_waveform(
    section: "RadioSection", segments: int, draws: int, seed: int, json: bool
) -> None:
    """Compare at the rate and the split that the options give, or at three splits of two."""
    from slimfl.errors import RequestError
    from slimfl.radio.waveform.code import Modem
    from slimfl.radio.waveform.comparison import compare
    from slimfl.radio.waveform.sionna_blocks import require_sionna

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
    if json:
        show_json({"waveform": documents})
    else:
        for document in documents:
            _show(document)


def _with_a_code(modems: "list[Modem]", rate: float) -> "list[Modem]":
    """Those that have a code for the rate; refused where none has."""
    from slimfl.errors import RequestError
    from slimfl.radio.waveform.code import CRC_BITS, code_of

    able, reason = [], None
    for modem in modems:
        try:
            code_of(modem, modem.block_bits - CRC_BITS, rate)
        except RequestError as error:
            reason = error
        else:
            able.append(modem)
    if not able and reason is not None:
        raise reason
    return able


def _splits(section: "RadioSection", rate: float, segments: int) -> list[tuple[float, ...]]:
    from slimfl.errors import RequestError
    from slimfl.radio import Superposition, signal

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


def _document(found: "Comparison") -> dict[str, Any]:
    import numpy as np

    gap_db, noise_db = found.fitted_gap_db(), found.fitted_noise_db()
    fitted = found.with_gap(gap_db)
    points = [
        {
            "split": list(split),
            "snr_db": snr_db,
            "segment": message + 1,
            "symbols": float(found.symbols[i, j, message]),
            "table": float(found.table[i, j, message]),
            "formula": float(found.formula[i, j, message]),
            "with_gap": float(fitted[i, j, message]),
        }
        for i, split in enumerate(found.splits)
        for j, snr_db in enumerate(found.snr_db)
        for message in range(len(split))
    ]
    binomial = np.sqrt(found.table * (1 - found.table) / found.draws)
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
        "worst_of_table": float(np.abs(found.table - found.symbols).max()),
        "worst_of_table_in_binomial_errors": float(
            (np.abs(found.table - found.symbols) / np.maximum(binomial, 1 / found.draws)).max()
        ),
        "altered_bits": found.altered_bits,
        "points": points,
    }


def _show(document: dict[str, Any]) -> None:
    size = 2 ** document["bits_per_symbol"]
    compared = ("symbols", "table", "formula", "with_gap")
    rows = [
        {
            "split": ", ".join(f"{share:g}" for share in point["split"]),
            "P/c, dB": point["snr_db"],
            "segment": point["segment"],
            **{key.replace("_", " "): f"{point[key]:.3f}" for key in compared},
        }
        for point in document["points"]
    ]
    show(
        table(
            rows,
            f"{size}-QAM at code rate {document['code_rate']:.3f}, "
            f"{document['spectral_efficiency']:g} bit/s/Hz, {document['links_per_point']} links "
            "each",
        ),
        f"One SINR gap of {document['sinr_gap_db']:.2f} dB fits all to within "
        f"{document['worst_with_gap']:.3f}; a loss on the noise alone "
        f"({document['implementation_loss_db']:.2f} dB) to within "
        f"{document['worst_with_loss']:.3f}. The table is within "
        f"{document['worst_of_table']:.3f} of symbols "
        f"({document['worst_of_table_in_binomial_errors']:.1f} binomial errors). "
        f"Bits that arrived other than sent: {document['altered_bits']}.",
    )
