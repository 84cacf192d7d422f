"""The program: ``rebalancer`` and ``python -m rebalancer``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command that the arguments name. Exit codes: 0 done, 1 failed at run time, 2 bad input, 130 interrupted."""
    try:
        from rebalancer.cli.program import program

        code = program(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
