"""Questions of our own, answered by many runs: which method suits which devices and channel."""

from lab.studies.catalogue import STUDIES, study
from lab.studies.study import Answer, Picture, Study, Titled

__all__ = ["STUDIES", "Answer", "Picture", "Study", "Titled", "study"]
