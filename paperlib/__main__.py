"""``python -m paperlib`` is the ``paperlib`` command."""

from paperlib.cli import main

if __name__ == "__main__":
    main()
