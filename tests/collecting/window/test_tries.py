"""What a rollout may still be asked for when its server went down under it."""

from reward_profiling.collecting.window.tries import Tries


def test_a_request_on_its_way_is_never_sent_again_without_retries() -> None:
    assert not Tries(retries=0, is_asking=True).put_off(0)


def test_a_rollout_that_was_not_sent_may_always_wait() -> None:
    tries = Tries(retries=4)

    assert tries.put_off(4)
    assert tries.retries == 4


def test_a_rollout_that_hangs_its_server_is_put_off_only_so_often() -> None:
    tries = Tries(retries=0, is_asking=True)

    assert [tries.put_off(2) for _ in range(3)] == [True, True, False]
