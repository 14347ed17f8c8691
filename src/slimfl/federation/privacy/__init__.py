"""Differential privacy: clip and noise as filters, what was released, unrepeatable noise."""
