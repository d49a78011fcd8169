"""The benchmark of the mapping goes through; how fast anything was is its own business."""

from bench.mapping import run


def test_a_short_run_has_every_case_with_its_samples_and_its_bar() -> None:
    report = run(rounds=2)
    cases = {name.rpartition(", ")[0] for name in report.samples}
    assert cases == {bar.name for bar in report.bars}
    assert len(cases) == 8
    for case, rivals in report.samples.items():
        wanted = {"ours", "general"} if case.endswith("µs each") else {"ours"}
        assert rivals.keys() == wanted
        assert all(value > 0 for samples in rivals.values() for value in samples)
