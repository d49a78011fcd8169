from rockgate.gateway.budget import Budget


def test_those_who_wait_are_woken_once_when_a_quarter_is_free() -> None:
    woken: list[str] = []

    def first() -> None:
        woken.append("first")

    def second() -> None:
        woken.append("second")

    budget = Budget(100, lambda: None)
    budget.take(150)
    assert budget.is_spent
    budget.wait(first)
    budget.wait(first)
    budget.wait(second)
    budget.forget(second)
    budget.give(60)
    assert woken == [] and not budget.is_spent
    budget.give(15)
    assert woken == ["first"]
    budget.give(75)
    assert woken == ["first"]


def test_twice_too_much_calls_for_help_each_time() -> None:
    calls: list[int] = []
    budget = Budget(100, lambda: calls.append(budget.used))
    budget.take(200)
    assert calls == []
    budget.take(1)
    budget.take(1)
    assert calls == [201, 202]


def test_one_who_waits_again_while_being_woken_is_kept_for_the_next_time() -> None:
    woken: list[int] = []

    def again() -> None:
        woken.append(budget.used)
        budget.wait(again)

    budget = Budget(100, lambda: None)
    budget.take(150)
    budget.wait(again)
    budget.give(100)
    assert woken == [50]
    budget.give(25)
    assert woken == [50, 25]
