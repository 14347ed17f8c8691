"""How long do the arrivals of one round take for a million devices, and in how much memory?

    python benchmarks/arrivals.py

Four segments over correlated Rician fading with correlated shadowing, every device at a place of
its own. Prints the seconds of each of five rounds (links and decoding) and the largest memory of
the process.
"""

import resource
import time

import numpy as np

from slimfl.devices import Population
from slimfl.experiment import RadioSection
from slimfl.radio import outage_channel, signal

DEVICES, SEGMENTS, ROUNDS = 1_000_000, 4, 5


def main() -> None:
    """One start, then round after round."""
    section = RadioSection(
        fading="rician",
        rician_k_db=6.0,
        fading_process="ar1",
        doppler_hz=0.05,
        shadowing_db=8.0,
        shadowing_correlation=0.9,
    )
    ones = np.broadcast_to(np.int64(1), DEVICES)
    places = np.random.default_rng(0).uniform(20.0, 200.0, DEVICES)
    power_dbm = np.broadcast_to(np.float64(section.power_dbm), DEVICES)
    devices = Population(np.arange(DEVICES), ones, ones, power_dbm, places)
    channel = outage_channel(section)
    messages = tuple((segment,) for segment in range(SEGMENTS))
    sent = signal(section, messages, SEGMENTS, (1e5,) * SEGMENTS)
    signals = [sent] * DEVICES
    state = channel.start(devices, seed=0)
    for number in range(1, ROUNDS + 1):
        begin = time.perf_counter()
        links, state = channel.links(state, number, devices, seed=0)
        received = channel.receive(links, signals, None)
        seconds = time.perf_counter() - begin
        shares = [(received.decoded > segment).mean() for segment in range(SEGMENTS)]
        del links, received  # what one round needs, not what two leave
        arrived = ", ".join(f"{share:.3f}" for share in shares)
        print(f"round {number}: {seconds:.3f} s, segments arrived: {arrived}")
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"largest memory: {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
