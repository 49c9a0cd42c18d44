"""All that is public: the one list of it (`lbr2pgo/__init__.py`)."""

from lbr2pgo.analyses.accuracy import Accuracy as Accuracy
from lbr2pgo.analyses.settling import Settled as Settled
from lbr2pgo.analyses.table import Table as Table
from lbr2pgo.api.reporting import call_graph as call_graph
from lbr2pgo.api.reporting import compare as compare
from lbr2pgo.api.reporting import diff as diff
from lbr2pgo.api.reporting import flow_graph as flow_graph
from lbr2pgo.api.reporting import report as report
from lbr2pgo.api.tasks import accuracy as accuracy
from lbr2pgo.api.tasks import carry as carry
from lbr2pgo.api.tasks import check as check
from lbr2pgo.api.tasks import convert as convert
from lbr2pgo.api.tasks import measure as measure
from lbr2pgo.api.tasks import open as open
from lbr2pgo.api.tasks import record as record
from lbr2pgo.api.tasks import settle as settle
from lbr2pgo.conversion import Conversion as Conversion
from lbr2pgo.counting.chosen_samples import CountingOptions as CountingOptions
from lbr2pgo.counting.count import count as count
from lbr2pgo.fleet.images import ConvertedImage as ConvertedImage
from lbr2pgo.fleet.images import Images as Images
from lbr2pgo.model.branch_counts import BranchCounts as BranchCounts
from lbr2pgo.model.branch_stacks import BranchStacks as BranchStacks
from lbr2pgo.model.count_sums import merge as merge
from lbr2pgo.model.incomplete import EmptyProfileError as EmptyProfileError
from lbr2pgo.model.incomplete import IncompleteError as IncompleteError
from lbr2pgo.pgo.measurements import Measurements as Measurements
from lbr2pgo.profiles.base import Output as Output
from lbr2pgo.profiles.carried.carry import Carried as Carried
from lbr2pgo.profiles.registry import output as output
from lbr2pgo.profiles.registry import waterfall_rows as waterfall_rows
from lbr2pgo.program.dwarf.debug_info import DebugInfo as DebugInfo
from lbr2pgo.program.program import Program as Program
from lbr2pgo.recorders.recording import RecordedFile as RecordedFile
from lbr2pgo.replay.replay import Flow as Flow
from lbr2pgo.replay.replay import ReplayOptions as ReplayOptions
from lbr2pgo.reports.checking import Checked as Checked
from lbr2pgo.reports.model import Report as Report
from lbr2pgo.reports.profile_diff import ProfileDiff as ProfileDiff
from lbr2pgo.support.errors import InputError as InputError
from lbr2pgo.support.errors import Lbr2pgoError as Lbr2pgoError
from lbr2pgo.support.errors import MissingToolError as MissingToolError
from lbr2pgo.support.errors import OutputError as OutputError

__version__: str
__all__: list[str]
