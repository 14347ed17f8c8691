"""Virtual time: how long devices work, when a round ends, and how much battery that costs."""
