from .schedulers import SCHEDULER_VARIABLE as SCHEDULER_VARIABLE
from .schedulers import Place as Place
from .schedulers import job_script as job_script
from .schedulers import sweep_place as sweep_place
from .schedulers import visible_devices as visible_devices
from .units import SweepError as SweepError
from .units import run_sweep as run_sweep
from .units import run_units as run_units
