"""The devices' data: datasets with checksums, and their partition over devices."""

from slimfl.data.dataset import Dataset as Dataset
from slimfl.data.dataset import Moments as Moments
from slimfl.data.dataset import Samples as Samples
from slimfl.data.partitions import Partition as Partition
from slimfl.data.partitions import all_of_one as all_of_one
from slimfl.data.partitions import partition as partition
from slimfl.data.sources import SOURCES as SOURCES
from slimfl.data.sources import asked as asked
from slimfl.data.sources import load as load
from slimfl.data.sources import load_section as load_section
from slimfl.data.sources import locate as locate
from slimfl.data.sources import save as save
from slimfl.data.sources import synthetic as synthetic
