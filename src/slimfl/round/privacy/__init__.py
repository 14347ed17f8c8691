"""Differential privacy: clipping and noise as filters, the count of releases, secret noise."""
