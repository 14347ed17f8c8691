"""`python -m slimfl.flower.guard superlink|supernode|tasks` with Flower's options."""

import sys


def main() -> None:
    """Start what the first argument names."""
    what, arguments = sys.argv[1:2], sys.argv[2:]
    if what == ["superlink"]:
        from slimfl.flower.guard.start import superlink

        superlink(arguments)
    elif what == ["supernode"]:
        from slimfl.flower.guard.start import supernode

        supernode(arguments)
    elif what == ["tasks"]:
        from slimfl.flower.guard.tasks import run

        run(arguments)
    else:
        sys.exit("give superlink, supernode or tasks, then Flower's options")


main()
