"""A population is its columns; a device is a row of them."""

import numpy as np

from slimfl.devices import Device, Population


def alike(count):
    samples = np.arange(10, 10 + count)
    return Population.alike(samples, max_width=1, power_dbm=23.0, distance_m=100.0)


def test_rows_and_columns_say_the_same():
    population = alike(4)
    assert [population.device(row) for row in range(4)] == list(population)
    assert population.device(2) == Device(2, 12, 1, 23.0, 100.0)


def test_taking_rows_keeps_who_the_devices_are():
    chosen = alike(10).take(np.array([7, 3]))
    assert [device.id for device in chosen] == [7, 3]
    assert chosen.samples.tolist() == [17, 13]
    assert len(chosen) == 2


def test_a_million_equal_devices_take_two_columns_of_memory():
    population = Population.alike(
        np.ones(10**6, np.int64), max_width=1, power_dbm=23.0, distance_m=100.0
    )
    shared = (population.max_width, population.power_dbm, population.distance_m)
    assert all(column.strides == (0,) for column in shared)
    assert population.take(np.arange(5)).distance_m.tolist() == [100.0] * 5
