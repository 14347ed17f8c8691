"""devices.csv: values are read back exactly, and wrong ones are refused."""

import os

import pytest

from slimfl.devices import population_digest, population_of, read_devices, write_devices
from slimfl.devices.devices_csv import COLUMNS
from slimfl.errors import RequestError
from slimfl.experiment import build

WIDTHS = (0.5, 1.0)
HEADER = ",".join(COLUMNS)
GOOD = "0,phone,0.5,1e8,default,inf,1.0,100.0,0.5,23.0,1.0,17"


@pytest.fixture
def table(tmp_path):
    def write(*rows, header=HEADER):
        path = tmp_path / "devices.csv"
        path.write_text("\n".join([header, *rows, ""]))
        return path

    return write


def phones(devices):
    return population_of(
        build({"federation": {"devices": devices}, "population": {"preset": "phones"}})
    )


def test_the_way_through_a_file_changes_nothing(tmp_path):
    population, path = phones(25_000), tmp_path / "devices.csv"  # more than one part
    write_devices(path, population, WIDTHS)
    again = read_devices(path, 25_000, WIDTHS)
    assert population_digest(again) == population_digest(population)
    assert list(again.take([0, 24_999])) == list(population.take([0, 24_999]))


def test_units_stand_in_the_header(tmp_path):
    write_devices(tmp_path / "d.csv", phones(1), WIDTHS)
    header = (tmp_path / "d.csv").read_text().splitlines()[0].split(",")
    assert {"macs_per_s", "battery_j", "distance_m", "angle_rad", "power_dbm"} <= {*header}


def test_the_digest_sees_every_value(table):
    first = population_digest(read_devices(table(GOOD), 1, WIDTHS))
    for old, new in [("phone", "tablet"), ("0.5,1e8", "1.0,1e8"), ("1e8", "2e8"), (",inf", ",5.0"),
                     ("default", "kappa"), ("100.0", "101.0"), ("23.0", "20.0")]:  # fmt: skip
        changed = population_digest(read_devices(table(GOOD.replace(old, new, 1)), 1, WIDTHS))
        assert changed != first, old
    # the number of samples is the partition's
    assert population_digest(read_devices(table(GOOD.replace(",17", ",18")), 1, WIDTHS)) == first


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("1e8", "nan", "macs_per_s is 'nan'"),
        ("1e8", "fast", "macs_per_s is 'fast'"),
        ("100.0", "inf", "distance_m is 'inf'"),
        ("0.5,1e8", "0.25,1e8", "no width 0.25"),
        ("1.0,100.0", "1.5,100.0", "availability is '1.5'"),
        ("phone", "pho ne", "is no name"),
        ("0,phone", "1,phone", "instead of device 0"),
        (",17", "", "11 values for 12 columns"),
        ("phone", "x" * 5000, "4096 characters"),
    ],
)
def test_a_wrong_value_is_refused_with_its_line(table, old, new, words):
    with pytest.raises(RequestError) as caught:
        read_devices(table(GOOD.replace(old, new, 1)), 1, WIDTHS)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("column", [name for name in COLUMNS if name != "samples"])
def test_a_missing_column_is_named(table, column):
    kept = [i for i, name in enumerate(COLUMNS) if name != column]
    row, header = GOOD.split(","), ",".join(COLUMNS[i] for i in kept)
    with pytest.raises(RequestError, match=f"lacks the column {column}"):
        read_devices(table(",".join(row[i] for i in kept), header=header), 1, WIDTHS)


def test_unknown_and_doubled_columns_are_refused(table):
    with pytest.raises(RequestError, match="unknown column 'speed'"):
        read_devices(table(GOOD + ",1", header=",".join([*COLUMNS, "speed"])), 1, WIDTHS)
    with pytest.raises(RequestError, match="a column twice"):
        read_devices(table(GOOD + ",1", header=",".join([*COLUMNS, "samples"])), 1, WIDTHS)


def test_the_number_of_devices_is_that_of_the_experiment(table):
    second = GOOD.replace("0,", "1,", 1)
    with pytest.raises(RequestError, match=r"has 2 devices and the experiment has 3"):
        read_devices(table(GOOD, second), 3, WIDTHS)
    with pytest.raises(RequestError, match="more than 1 devices"):
        read_devices(table(GOOD, second), 1, WIDTHS)


def test_what_is_no_table_is_refused(tmp_path):
    path = tmp_path / "devices.csv"
    with pytest.raises(RequestError, match="there is no file"):
        read_devices(path, 1, WIDTHS)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RequestError, match="not a valid table"):
        read_devices(path, 1, WIDTHS)
    path.unlink()
    os.mkfifo(path)  # opening it must not wait for a writer
    with pytest.raises(RequestError, match="cannot be read"):
        read_devices(path, 1, WIDTHS)
