"""Questions of our own, answered by many runs: which method suits which devices and channel."""

from slimfl.studies.catalogue import STUDIES, study
from slimfl.studies.study import Answer, Picture, Study, Titled

__all__ = ["STUDIES", "Answer", "Picture", "Study", "Titled", "study"]
