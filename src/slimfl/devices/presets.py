"""Populations by name, each with its source; `docs/howto/unequal-devices.md` shows them.

`cell`: devices spread evenly over a macro cell of 3GPP TR 38.901, table 7.2-1 (UMa): 500 m between
sites, so a hexagon's corner is 500 / sqrt(3) = 289 m away, and no device is nearer than 35 m.

`phones`: the three phones of FLASH (Yang et al., WWW 2021, arXiv:2006.06983), which took 1642, 588
and 179 ms per batch of 10 images of FEMNIST. Its CNN has 17.2 million multiply-adds per image and a
training step three times as many, 516 million per batch: 314, 878 and 2884 million per second.
Measured times varied by 6, 4 and 1.3 percent. FLASH maps unknown phones to the three in the
proportion 18820 : 16428 : 159. Batteries are typical ones of 3000, 4000 and 4500 mAh at 3.85 V. The
slowest tier trains half the width: our choice, not FLASH's.

`sensors`: microcontrollers. 12.3 million multiply-adds (24.7 million operations) in 99.1 ms on a
Cortex-M7 at 216 MHz (Lai et al. 2018, arXiv:1801.06601, CMSIS-NN): 125 million per second, in 8
bits and forward only, so an upper limit for training. 20 dBm is power class 5 of NB-IoT (3GPP TS
36.101). Two alkaline AA cells hold about 2 x 1.5 V x 2500 mAh = 27 kJ. They are placed as in `cell`
and train the narrowest width.
"""

from slimfl.experiment import DeviceClass
from slimfl.experiment.sections.population import Disc, Lognormal

MACRO_CELL = Disc(distribution="disc", radius_m=289.0, inner_m=35.0)

_FLASH = (
    # tier, share of 18820 : 16428 : 159, speed, its variation, battery in mAh
    ("phone-low", 18820, 314e6, 0.06, 3000),
    ("phone-middle", 16428, 878e6, 0.04, 4000),
    ("phone-high", 159, 2884e6, 0.013, 4500),
)


def preset_classes(name: str, widths: tuple[float, ...]) -> tuple[DeviceClass, ...]:
    """The classes of a named population, for a network of these widths."""
    match name:
        case "cell":
            return (DeviceClass(name="device", distance_m=MACRO_CELL),)
        case "phones":
            total = sum(weight for _, weight, *_ in _FLASH)
            return tuple(
                DeviceClass(
                    name=tier,
                    share=weight / total,
                    max_width=_about_half(widths) if tier == "phone-low" else 1.0,
                    macs_per_s=Lognormal(distribution="lognormal", median=speed, sigma=sigma),
                    battery_j=mah / 1000 * 3600 * 3.85,
                    distance_m=MACRO_CELL,
                )
                for tier, weight, speed, sigma, mah in _FLASH
            )
        case "sensors":
            return (
                DeviceClass(
                    name="sensor",
                    max_width=widths[0],
                    macs_per_s=12.35e6 / 0.0991,
                    battery_j=2 * 1.5 * 2.5 * 3600,
                    distance_m=MACRO_CELL,
                    power_dbm=20.0,
                ),
            )
    return ()


def _about_half(widths: tuple[float, ...]) -> float:
    """The widest width up to one half, else the narrowest."""
    return max((width for width in widths if width <= 0.5), default=widths[0])
