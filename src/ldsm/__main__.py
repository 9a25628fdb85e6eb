"""``ldsm`` and ``python -m ldsm`` start here."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run a command; Ctrl-C works even while the program is still loading."""
    try:
        from .cli.main import main as run

        run()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("error: interrupted.\n")
        os._exit(130)  # half-imported libraries must not run their clean-up


if __name__ == "__main__":
    main()
