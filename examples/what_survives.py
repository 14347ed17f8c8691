"""How much of SlimFL's advantage survives on links other than the paper's?

    python examples/what_survives.py          tables in Markdown
    python examples/what_survives.py --json   the same numbers in full

For each link, and for the noise of the good and of the poor channel: decoding probabilities,
D = sum_i 1/p_i (the channel's part of theorem 1's bound; 2 is a perfect channel), and the expected
number of delivered segments per joule and per second on the air. SlimFL stands beside Vanilla FL at
either width and beside its segments in turn. Splits are the best of each link. Everything is by
formula and quadrature; nothing is trained.
"""

import json
import sys

from slimfl import radio
from slimfl.experiment import RadioSection

BITS = (86_344.0, 86_344.0)
SEGMENTS, HALF, WHOLE = ((0,), (1,)), ((0,),), ((0, 1),)
#: How a method sends, and the key that it changes.
METHODS = {
    "SlimFL": (SEGMENTS, {}),
    "Vanilla 0.5x": (HALF, {}),
    "Vanilla 1.0x": (WHOLE, {}),
    "in turn, same energy": (SEGMENTS, {"multiplexing": "orthogonal-energy"}),
    "in turn, same airtime": (SEGMENTS, {"multiplexing": "orthogonal-airtime"}),
}
#: Takes twice the airtime of the others.
LONGER = "in turn, same energy"
LINKS = {
    "the paper's": {},
    "line of sight, K = 6 dB": {"fading": "rician", "rician_k_db": 6.0},
    "line of sight, K = 12 dB": {"fading": "rician", "rician_k_db": 12.0},
    "diversity of order 2 (Nakagami m = 2)": {"fading": "nakagami", "nakagami_m": 2.0},
    "diversity of order 4 (Nakagami m = 4)": {"fading": "nakagami", "nakagami_m": 4.0},
    "2 attempts": {"max_attempts": 2},
    "4 attempts": {"max_attempts": 4},
    "1% left after cancellation": {"residual_interference": 0.01},
    "5% left after cancellation": {"residual_interference": 0.05},
    "10% left after cancellation": {"residual_interference": 0.1},
    "shadowing of 8 dB": {"shadowing_db": 8.0},
    "one codeword per message": {"decoder": "normal"},
    "codewords of 200 symbols": {"decoder": "normal", "codeword_symbols": 200},
}


def described(channel, keys, messages, changed):
    """One method over one link."""
    keys = {**keys, **changed}
    if changed:  # nothing is cancelled where segments do not overlap
        keys.pop("residual_interference", None)
    section = RadioSection(channel=channel, split="optimal-numeric", **keys)
    sent = radio.signal(section, messages, 2, BITS)

    def probabilities(attempts):
        there = section.model_copy(update={"max_attempts": attempts})
        return radio.section_probabilities(there, sent.coding, sent.message_bits).tolist()

    found = probabilities(section.max_attempts)
    # a signal is sent again while something of it is missing
    attempts = 1 + sum(1 - probabilities(n)[-1] for n in range(1, section.max_attempts))
    delivered = sum(p * len(message) for p, message in zip(found, messages, strict=True))
    seconds = attempts * sent.airtime_s(section.bandwidth_hz)
    joules = attempts * sent.full_power_s(section.bandwidth_hz) * radio.watt(section.power_dbm)
    return {
        "share": sent.coding.split[0],
        "p": found,
        "D": sum(len(message) / p for p, message in zip(found, messages, strict=True)),
        "attempts": attempts,
        "delivered": delivered,
        "per_joule": delivered / joules,
        "per_second": delivered / seconds,
    }


def numbers():
    """By channel, link and method."""
    return {
        channel: {
            link: {
                method: described(channel, keys, messages, changed)
                for method, (messages, changed) in METHODS.items()
            }
            for link, keys in LINKS.items()
        }
        for channel in ("poor", "good")
    }


def probability_table(links):
    """Decoding probabilities, D, and what is left of SlimFL's gain in D over one message."""
    lines = [
        "| link | λ | p1 | p2 | p, 0.5x | p, 1.0x | D, SlimFL | D, 1.0x | D, in turn, same energy "
        "| D, in turn, same airtime | gain in D | of the paper's link's |",
        "|---" * 12 + "|",
    ]
    usual = next(iter(links.values()))
    usual_gain = usual["Vanilla 1.0x"]["D"] - usual["SlimFL"]["D"]
    for link, found in links.items():
        slim, half, whole, energy, airtime = found.values()
        cells = [f"{slim['share']:.3f}"]
        cells += [f"{p:.3f}" for p in (*slim["p"], *half["p"], *whole["p"])]
        cells += [f"{one['D']:.3f}" for one in (slim, whole, energy, airtime)]
        gain = whole["D"] - slim["D"]
        left = f"{gain / usual_gain:.0%}" if gain > 0 else "none"
        lines.append(f"| {link} | {' | '.join(cells)} | {gain:+.3f} | {left} |")
    return "\n".join(lines)


def cost_table(links, key, scale):
    """Delivered segments per joule or second; in bold the most of signals with equal airtime."""
    lines = ["| link | " + " | ".join(METHODS) + " |", "|---" * (1 + len(METHODS)) + "|"]
    for link, found in links.items():
        told = {name: f"{one[key] * scale:.2f}" for name, one in found.items()}
        best = max((told[name] for name in METHODS if name != LONGER), key=float)
        cells = [
            f"**{one}**" if one == best and name != LONGER else one for name, one in told.items()
        ]
        lines.append(f"| {link} | {' | '.join(cells)} |")
    return "\n".join(lines)


def tables():
    """Every table by its name."""
    found = {}
    for channel, links in numbers().items():
        found[f"survives {channel}"] = probability_table(links)
        found[f"survives {channel} per joule"] = cost_table(links, "per_joule", 1e-3)
        found[f"survives {channel} per second"] = cost_table(links, "per_second", 1e-3)
    return found


def main():
    """Print everything."""
    if "--json" in sys.argv[1:]:
        print(json.dumps(numbers(), indent=2))
        return
    for name, table in tables().items():
        print(f"{name.replace('survives', 'Channel:')}\n\n{table}\n")


if __name__ == "__main__":
    main()
