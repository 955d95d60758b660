from models.progress import Progress


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silence_counts_only_while_something_is_in_flight() -> None:
    clock = FakeClock()
    progress = Progress(patience_s=10, clock=clock)
    clock.now = 1000
    assert not progress.stalled
    progress.began()
    assert progress.silent_s() == 0
    clock.now = 1010
    assert not progress.stalled
    clock.now = 1011
    assert progress.stalled
    progress.moved()
    assert not progress.stalled


def test_another_request_does_not_hide_that_nothing_comes_out() -> None:
    clock = FakeClock()
    progress = Progress(patience_s=10, clock=clock)
    progress.began()
    clock.now = 8
    progress.began()
    clock.now = 11
    assert progress.stalled


def test_an_end_is_progress_and_leaves_nothing_in_flight() -> None:
    clock = FakeClock()
    progress = Progress(patience_s=10, clock=clock)
    progress.began()
    progress.began()
    clock.now = 9
    progress.ended()
    clock.now = 15
    assert progress.in_flight == 1
    assert not progress.stalled
    progress.ended()
    clock.now = 500
    assert not progress.stalled
