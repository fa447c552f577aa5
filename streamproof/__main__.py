"""`python -m streamproof` is the command `streamproof`."""

from .properties.cli.entry import main

if __name__ == "__main__":
    main()
