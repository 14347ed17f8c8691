"""The table of networks in the documentation says what they cost."""

import re
from pathlib import Path

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
