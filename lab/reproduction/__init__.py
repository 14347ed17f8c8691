"""The paper's tables and figures as code: the runs that each needs, and its results."""
