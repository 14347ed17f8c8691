"""Progress in a log: a line now and then, with the remaining time."""

from slimfl.cli.jobs_bar import LINE_EVERY_S, progress_lines


def test_the_time_left_follows_from_the_pace_of_this_call():
    now, lines = [0.0], []
    watch = progress_lines(lines.append, lambda: now[0])
    watch(500.0, 1000.0, 5, 10)  # half of it was done before
    now[0] = LINE_EVERY_S - 1
    watch(510.0, 1000.0, 5, 10)
    assert lines == []
    now[0] = LINE_EVERY_S
    watch(600.0, 1000.0, 6, 10)  # a hundred in ten minutes, four hundred left
    assert lines == ["6 of 10 runs, 60.0% of the work; time left: about 40 min"]
    now[0] = LINE_EVERY_S + 1
    watch(601.0, 1000.0, 6, 10)
    assert len(lines) == 1


def test_without_progress_the_time_is_unknown():
    now, lines = [0.0], []
    watch = progress_lines(lines.append, lambda: now[0])
    watch(0.0, 10.0, 0, 2)
    now[0] = LINE_EVERY_S
    watch(0.0, 10.0, 0, 2)
    assert lines == ["0 of 2 runs, 0.0% of the work; time left: unknown"]
