"""Many prompts: a list, a file, a data frame, a cluster; see ``map_prompts`` and ``openagent batch``.

Owns: the public names. Does not know: the command line.
"""

from .filling import fill
from .ledger import Ledger
from .mapping import Run, map_prompts
from .pace import Pace
from .results import Budget, Result, Tally
from .table import FORMATS

__all__ = ["FORMATS", "Budget", "Ledger", "Pace", "Result", "Run", "Tally", "fill", "map_prompts"]
