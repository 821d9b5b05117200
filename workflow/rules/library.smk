# The checkout's own library, here and in the scripts of all jobs, whether or not it is installed (where the workflow lies
# in no checkout, the installed one); and what all rules take from it.
import os
import sys
from contextlib import contextmanager
from pathlib import Path

# Where this file lies; workflow.basedir is another workflow's folder where that one takes this as a module.
CHECKOUT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]
SOURCE = str(CHECKOUT / "src")
if Path(SOURCE, "schedlab").is_dir():
    sys.path.insert(0, SOURCE)
    os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [SOURCE, os.getenv("PYTHONPATH")])))

from schedlab.config.errors import UserError, disk_trouble
from schedlab.config.runtime import instructions, options, run_lock

instructions.pin()  # for all jobs, which are processes that this one starts

RUN_LOCK = Path(".schedlab/run.lock")
CONF = Path(str(config.get("conf") or "") or ("conf" if Path("conf").is_dir() else CHECKOUT / "conf"))
SCALE = str(config.get("scale") or "small")


@contextmanager
def plain_errors():
    """A user's mistake, or a full disk, ends the run with its paragraph alone; Snakemake would set it among lines of
    code.
    """
    try:
        yield
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    except OSError as error:
        if trouble := disk_trouble(error, str(Path.cwd())):
            raise SystemExit(f"error: {trouble}") from None
        raise
