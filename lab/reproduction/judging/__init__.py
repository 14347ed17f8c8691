"""How the paper's claims are judged: the rule, paired differences, reasons, comparison."""
