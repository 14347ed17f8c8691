"""Flower's SuperLink and SuperNode, with the doors shut that Flower leaves open on one machine.

Flower protects a SuperLink's fleet paths (node keys) and, where a secret is given, the way to its
tasks. Its open version has no credentials for the control paths, takes bodies of any size into
memory, and hands task tokens over as arguments, where `ps` shows them to everybody. Here are

    gate.py    what every request has to pass: known path, control token, bounded body
    tasks.py   Flower's SuperExec, which hands tokens over in an unnamed file
    start.py   SuperLink and SuperNode with both of these, with Flower's own options otherwise

    python -m slimfl.deployment.guard superlink|supernode|tasks FLOWER'S OPTIONS
"""
