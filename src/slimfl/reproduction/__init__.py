"""The paper's tables and figures as code: what each shows, what it takes, and what came out."""
