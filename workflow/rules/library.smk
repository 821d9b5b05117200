# Imports schedlab for all rules. This process and the scripts of all jobs use the library of the checkout, even if
# another one is installed. If the workflow is not in a checkout, they use the installed library.
import os
import sys
from contextlib import contextmanager
from pathlib import Path

# From the place of this file. If another workflow uses this one as a module, workflow.basedir is the other's folder.
CHECKOUT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]
SOURCE = str(CHECKOUT / "src")
if Path(SOURCE, "schedlab").is_dir():
    sys.path.insert(0, SOURCE)
    os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [SOURCE, os.getenv("PYTHONPATH")])))
    # Snakemake has imported our logger plugin, and with it parts of schedlab, from where schedlab is installed.
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if (
            name.partition(".")[0] == "schedlab"
            and origin
            and not Path(origin).resolve().is_relative_to(Path(SOURCE).resolve())
        ):
            del sys.modules[name]

from schedlab.config.errors import UserError, disk_trouble
from schedlab.config.runtime import instructions, options, run_lock

instructions.pin()  # for all jobs, which are processes that this one starts

RUN_LOCK = Path(".schedlab/run.lock")
CONF = Path(str(config.get("conf") or "") or ("conf" if Path("conf").is_dir() else CHECKOUT / "conf"))
SCALE = str(config.get("scale") or "small")


@contextmanager
def plain_errors():
    """After a user's mistake or on a full disk, end the run with the message alone, without lines of code."""
    try:
        yield
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    except OSError as error:
        if trouble := disk_trouble(error, str(Path.cwd())):
            raise SystemExit(f"error: {trouble}") from None
        raise
