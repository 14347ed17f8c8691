"""The table of networks in the documentation says what they cost."""

import re
from pathlib import Path
from statistics import mean, stdev

from slimfl.nn import MODELS, build, cost

PAGE = Path(__file__).parents[2] / "docs/howto/own-model.md"
ROW = re.compile(
    r"^\| `([a-z-]+)` \|.*\| ([\d,]+), ([\d,]+) \| ([\d.]+), ([\d.]+) million \|$", re.M
)


def test_the_table_of_networks():
    rows = ROW.findall(PAGE.read_text())
    assert {name for name, *_ in rows} == set(MODELS)
    for name, *numbers in rows:
        shape = (3, 32, 32) if name == "resnet" else (1, 28, 28)
        counted = cost(build(name, {}, in_channels=shape[0]), (0.5, 1.0), shape)
        parameters = [int(number.replace(",", "")) for number in numbers[:2]]
        assert parameters == [row.parameters for row in counted]
        for text, row in zip(numbers[2:], counted, strict=True):
            decimals = len(text.partition(".")[2])
            assert f"{row.multiply_adds / 1e6:.{decimals}f}" == text


def test_the_table_of_lost_statistics_follows_from_the_committed_runs():
    lines = (PAGE.parents[1] / "results/lost-statistics.txt").read_text().splitlines()[1:]
    runs = [line.split() for line in lines]
    row = r"^\| alpha (\S+) \| (-\d+) dBm \| (\d+)% \| (.*) \| (.*) \| (.*) \|$"
    rows = re.findall(row, PAGE.read_text(), re.M)
    assert len(rows) == 4
    for alpha, noise, lost, *accuracies in rows:
        columns = [("ul-mobilenet", 7), ("us-mobilenet", 7), ("us-mobilenet", 9)]
        for text, (network, column) in zip(accuracies, columns, strict=True):
            mine = [run for run in runs if run[:3] == [network, alpha, noise]]
            assert len(mine) == 3
            values = [100 * float(run[column]) for run in mine]
            assert text == f"{mean(values):.1f} ± {stdev(values):.1f}"
            assert lost == f"{100 * mean(float(run[5]) for run in mine):.0f}"
