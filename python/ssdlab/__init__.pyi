"""The public names and where they are, for type checkers and for the package itself."""

from ssdlab.api.ab import ab as ab
from ssdlab.api.array import array as array
from ssdlab.api.cache import cache as cache
from ssdlab.api.chart import Chart as Chart
from ssdlab.api.compare import compare as compare
from ssdlab.api.explain import explain as explain
from ssdlab.api.imports import import_runs as import_runs
from ssdlab.api.kept import load as load
from ssdlab.api.kept import query as query
from ssdlab.api.kept import runs as runs
from ssdlab.api.looks import audit as audit
from ssdlab.api.looks import health as health
from ssdlab.api.looks import scan as scan
from ssdlab.api.names import devices as devices
from ssdlab.api.names import drives as drives
from ssdlab.api.names import interfaces as interfaces
from ssdlab.api.names import parts as parts
from ssdlab.api.names import policies as policies
from ssdlab.api.names import procedures as procedures
from ssdlab.api.plan import plan_cache as plan_cache
from ssdlab.api.plan import plan_storage as plan_storage
from ssdlab.api.reliability import reliability as reliability
from ssdlab.api.report import Report as Report
from ssdlab.api.reproduce import reproduce as reproduce
from ssdlab.api.rig import Rig as Rig
from ssdlab.api.run import replay as replay
from ssdlab.api.run import run as run
from ssdlab.api.sweep import sweep as sweep
from ssdlab.api.test import resume as resume
from ssdlab.api.test import test as test
from ssdlab.api.traces import trace as trace
from ssdlab.api.twins import fit as fit
from ssdlab.api.twins import predict as predict
from ssdlab.errors import BrokenOffError as BrokenOffError
from ssdlab.errors import ExperimentError as ExperimentError
from ssdlab.errors import InputError as InputError
from ssdlab.errors import Interrupted as Interrupted
from ssdlab.errors import MissingProgramError as MissingProgramError
from ssdlab.errors import RefusedError as RefusedError
from ssdlab.errors import SsdlabError as SsdlabError
from ssdlab.errors import UnknownNameError as UnknownNameError
from ssdlab.progress import Progress as Progress
from ssdlab.progress import ProgressCallback as ProgressCallback
from ssdlab.results import DirectionStats as DirectionStats
from ssdlab.results import JobResult as JobResult
from ssdlab.results import Result as Result
from ssdlab.store import RunStore as RunStore
from ssdlab.target import Fio as Fio
from ssdlab.target import Settings as Settings
from ssdlab.target import Sim as Sim
from ssdlab.target import Target as Target

__version__: str
__all__: list[str]
