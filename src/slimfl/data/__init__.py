"""The devices' data: datasets with checksums, and their partition over devices."""

from slimfl.data.dataset import Dataset, Moments, Samples
from slimfl.data.partitions import Partition, all_of_one, partition
from slimfl.data.sources import SOURCES, asked, load, load_section, locate, save, synthetic

__all__ = [
    "SOURCES",
    "Dataset",
    "Moments",
    "Partition",
    "Samples",
    "all_of_one",
    "asked",
    "load",
    "load_section",
    "locate",
    "partition",
    "save",
    "synthetic",
]
