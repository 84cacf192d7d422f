"""The program: ``rebalancer`` and ``python -m rebalancer``."""

from __future__ import annotations

import sys

from rebalancer.cli.program import program


def main() -> None:
    """Run the command that the arguments name. Exit codes: 0 done, 1 failed at run time, 2 bad settings or input."""
    sys.exit(program(sys.argv[1:]))


if __name__ == "__main__":
    main()
