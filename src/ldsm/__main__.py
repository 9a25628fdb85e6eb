"""``python -m ldsm`` is ``ldsm``."""

from .cli import main

if __name__ == "__main__":
    main()
