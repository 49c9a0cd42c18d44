"""All that is public: the one list of it (`lbr2pgo/__init__.py`)."""

from lbr2pgo.api import call_graph as call_graph
from lbr2pgo.api import convert as convert
from lbr2pgo.api import flow_graph as flow_graph
from lbr2pgo.api import open as open
from lbr2pgo.api import report as report
from lbr2pgo.conversion import Conversion as Conversion
from lbr2pgo.counting.count import CountingOptions as CountingOptions
from lbr2pgo.counting.count import count as count
from lbr2pgo.model.branch_counts import BranchCounts as BranchCounts
from lbr2pgo.model.branch_stacks import BranchStacks as BranchStacks
from lbr2pgo.model.count_sums import merge as merge
from lbr2pgo.model.incomplete import EmptyProfileError as EmptyProfileError
from lbr2pgo.model.incomplete import IncompleteError as IncompleteError
from lbr2pgo.profiles.base import Output as Output
from lbr2pgo.profiles.registry import output as output
from lbr2pgo.profiles.registry import waterfall_rows as waterfall_rows
from lbr2pgo.program.dwarf.debug_info import DebugInfo as DebugInfo
from lbr2pgo.program.program import Program as Program
from lbr2pgo.replay.replay import Flow as Flow
from lbr2pgo.replay.replay import ReplayOptions as ReplayOptions
from lbr2pgo.support.errors import InputError as InputError
from lbr2pgo.support.errors import Lbr2pgoError as Lbr2pgoError
from lbr2pgo.support.errors import MissingToolError as MissingToolError
from lbr2pgo.support.errors import OutputError as OutputError

__version__: str
__all__: list[str]
