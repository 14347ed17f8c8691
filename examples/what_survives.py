"""How much of SlimFL's advantage over one message survives on links other than the paper's?

    python examples/what_survives.py

prints a table with one row per link: the best power split, the decoding probabilities of both
segments, that of the whole model in one message (Vanilla FL-1.0x), and D = sum_i 1/p_i for each
method. D is the channel's part of theorem 1's bound; 2 means a perfect channel. All numbers come
from formulas and quadrature; nothing is trained.
"""

from slimfl import radio
from slimfl.config import RadioSection

BITS = (86_344.0, 86_344.0)
LINKS = {
    "the paper's, poor channel": {},
    "line of sight, K = 6 dB": {"fading": "rician", "rician_k_db": 6.0},
    "line of sight, K = 12 dB": {"fading": "rician", "rician_k_db": 12.0},
    "diversity of order 2 (Nakagami m = 2)": {"fading": "nakagami", "nakagami_m": 2.0},
    "diversity of order 4 (Nakagami m = 4)": {"fading": "nakagami", "nakagami_m": 4.0},
    "shadowing of 8 dB": {"shadowing_db": 8.0},
    "2 attempts": {"max_attempts": 2},
    "4 attempts": {"max_attempts": 4},
    "1% left after cancellation": {"residual_interference": 0.01},
    "5% left after cancellation": {"residual_interference": 0.05},
    "10% left after cancellation": {"residual_interference": 0.1},
    "one codeword per message": {"decoder": "normal"},
    "codewords of 200 symbols": {"decoder": "normal", "codeword_symbols": 200},
}


def row(name, keys):
    """One link: SlimFL with its best split, and all in one message."""
    section = RadioSection(channel="poor", split="optimal-numeric", **keys)
    found = {}
    for method, messages in (("slimfl", ((0,), (1,))), ("one message", ((0, 1),))):
        sent = radio.signal(section, messages, 2, BITS)
        found[method] = radio.section_probabilities(section, sent.coding, sent.message_bits)
        if method == "slimfl":
            share = sent.coding.split[0]
    first, second = found["slimfl"]
    [whole] = found["one message"]
    d_slimfl, d_whole = 1 / first + 1 / second, 2 / whole
    numbers = (f"{share:.3f}", *(f"{p:.3f}" for p in (first, second, whole)))
    return (name, *numbers, f"{d_slimfl:.3f}", f"{d_whole:.3f}", f"{d_whole - d_slimfl:+.3f}")


def main():
    """Print the table in Markdown."""
    print("| link | λ | p1 | p2 | p, one message | D, SlimFL | D, one message | gain in D |")
    print("|---|---|---|---|---|---|---|---|")
    for name, keys in LINKS.items():
        print("| " + " | ".join(row(name, keys)) + " |")


if __name__ == "__main__":
    main()
