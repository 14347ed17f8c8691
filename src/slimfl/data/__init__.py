"""What the devices hold: datasets with checksums, and their partition over devices."""

from slimfl.data.dataset import Dataset, Samples
from slimfl.data.partition import Partition, partition
from slimfl.data.sources import SOURCES, load, locate
from slimfl.data.synthetic import synthetic

__all__ = ["SOURCES", "Dataset", "Partition", "Samples", "load", "locate", "partition", "synthetic"]
