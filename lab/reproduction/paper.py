"""The numbers that the paper prints, as it prints them."""

from __future__ import annotations

#: Table I: kernel (in, out, side, side) or (in, out) of every layer at 1.0x and at 0.5x.
TABLE1 = (
    ((1, 32, 3, 3), (1, 16, 3, 3)),
    ((1, 32, 3, 3), (1, 16, 3, 3)),
    ((32, 32, 1, 1), (16, 16, 1, 1)),
    ((1, 32, 3, 3), (1, 16, 3, 3)),
    ((32, 64, 1, 1), (16, 32, 1, 1)),
    ((64, 10), (32, 10)),
)

#: Table III: percent, and the deviation after the ± sign.
TABLE3: dict[tuple[str, float], dict[str, tuple[float, float]]] = {
    setting: dict(
        zip(
            ("slimfl 0.5x", "slimfl 1.0x", "vanilla-0.5x 0.5x", "vanilla-1.0x 1.0x"),
            column,
            strict=True,
        )
    )
    for setting, column in {
        ("good", 0.1): ((54, 2.2), (59, 2.3), (45, 5.9), (69, 5.8)),
        ("good", 1.0): ((83, 1.0), (85, 1.1), (84, 1.1), (85, 4.0)),
        ("good", 10.0): ((85, 1.0), (87, 1.1), (85, 1.0), (86, 4.3)),
        ("poor", 0.1): ((56, 2.4), (65, 2.9), (39, 8.3), (55, 9.2)),
        ("poor", 1.0): ((82, 1.7), (84, 1.4), (83, 1.2), (80, 6.0)),
        ("poor", 10.0): ((85, 1.1), (87, 0.9), (85, 0.9), (82, 4.7)),
    }.items()
}

#: Table IV, as (1.0x, 0.5x).
MFLOPS = (2.76, 0.79)
PARAMETERS = (4586, 2293)
BITS = (172_688, 86_344)
POWER_MW = (132.1, 67.4)

#: Table V, as (SlimFL, Vanilla FL-1.5x).
POWER_A_ROUND_MW = (199.5, 399.1)
MFLOPS_A_ROUND = (3.56, 3.56)

#: Table VI in MBytes of 2^20 bytes; the rows are read as the good and the poor channel (E6).
TABLE6 = {
    "good": {"slimfl 0.5x": 1.96, "slimfl 1.0x": 198.45, "slimfl drop": 5.46,
             "vanilla-0.5x": 102.21, "vanilla-0.5x drop": 0.72,
             "vanilla-1.0x": 200.30, "vanilla-1.0x drop": 5.56},
    "poor": {"slimfl 0.5x": 18.32, "slimfl 1.0x": 130.10, "slimfl drop": 57.44,
             "vanilla-0.5x": 93.87, "vanilla-0.5x drop": 9.06,
             "vanilla-1.0x": 144.93, "vanilla-1.0x drop": 60.96},
}  # fmt: skip

#: Table VII, as (SlimFL, Vanilla FL-1.5x) by (channel, alpha): watts, and giga-operations.
TABLE7_W = {
    ("good", 0.1): (71.0, 158.8), ("poor", 0.1): (57.3, 196.8),
    ("good", 1.0): (8.5, 15.8), ("poor", 1.0): (10.4, 36.7),
    ("good", 10.0): (3.03, 10.2), ("poor", 10.0): (3.51, 25.4),
}  # fmt: skip
TABLE7_GFLOPS = {
    ("good", 0.1): (1.27, 1.88), ("poor", 0.1): (1.02, 2.41),
    ("good", 1.0): (0.15, 0.22), ("poor", 1.0): (0.18, 0.51),
    ("good", 10.0): (0.05, 0.14), ("poor", 10.0): (0.06, 0.35),
}  # fmt: skip

#: Figure 4: the split that minimises D, and the rate at which the corrected formula gives it.
BEST_SPLIT = 0.662
FIGURE4_BIT_S_HZ = 0.7375
#: Figure 5: gain of the optimal split in points at both widths; accuracy with both weights.
SPLIT_GAIN = (6.4, 8.8)
WEIGHTS_ACCURACY = (78, 69)
OTHER_SPLIT, OTHER_WEIGHTS = (0.8, 0.2), (0.3, 0.7)
#: Figure 6: the best accuracy at 0.5x and at 1.0x.
DEVICES_ACCURACY = (79, 85)
