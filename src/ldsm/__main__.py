"""``ldsm`` and ``python -m ldsm`` start here."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run a command; Ctrl-C is answered even while the program is still being loaded."""
    try:
        from .cli.main import main as run

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("error: interrupted.\n")
        os._exit(130)  # libraries that are half imported must not be asked to clean up


if __name__ == "__main__":
    main()
