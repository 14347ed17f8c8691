"""The paper's tables and figures, and two questions about its open points."""
