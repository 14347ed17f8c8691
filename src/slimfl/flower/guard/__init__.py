"""Flower's SuperLink and SuperNode, protected against other users of the machine.

Flower protects a SuperLink's fleet paths (node keys) and, if a secret is given, access to its
tasks. Its open-source version has no credentials for the control paths, reads bodies of any size
into memory, and passes task tokens as arguments, where `ps` shows them to everybody. Here are

    gate.py    what every request has to pass: known path, control token, bounded body
    tasks.py   Flower's SuperExec, which hands tokens over in an unnamed file
    start.py   SuperLink and SuperNode with both of these, with Flower's own options otherwise

    python -m slimfl.flower.guard superlink|supernode|tasks FLOWER'S OPTIONS
"""
