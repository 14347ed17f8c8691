"""Virtual time: how long devices work, when a round ends, and what it takes from batteries."""
