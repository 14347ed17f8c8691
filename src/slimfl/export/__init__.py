"""Export of a trained model: files per width, the cost of each, and which one to use.

`trained` reads a run folder, `exporting` writes the files and their manifest, `picking` chooses a
width from a table of costs, and `policy` chooses one on the device. This package imports nothing by
itself, so that `slimfl.export.policy.WidthPolicy` does not wait for torch.
"""
