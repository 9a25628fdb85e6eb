"""``python -m ldsm`` is ``ldsm``."""

from .cli.main import main

if __name__ == "__main__":
    main()
