"""`python -m slimfl.deployment.guard superlink|supernode|tasks` with Flower's options."""

import sys


def main() -> None:
    """Start what the first argument names."""
    what, arguments = sys.argv[1:2], sys.argv[2:]
    if what == ["superlink"]:
        from slimfl.deployment.guard.start import superlink

        superlink(arguments)
    elif what == ["supernode"]:
        from slimfl.deployment.guard.start import supernode

        supernode(arguments)
    elif what == ["tasks"]:
        from slimfl.deployment.guard.tasks import run

        run(arguments)
    else:
        sys.exit("give superlink, supernode or tasks, then Flower's options")


main()
