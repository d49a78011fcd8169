"""How fast does the store append and recover, and how long does it block the event loop?

Defends, in `python -m bench store`:
- a 16 KB batch appended, everything included (envelope, checksums, unit, populated pages, rolls),
  takes at most half the time of a plain `pwritev` of the same bytes in the same run;
- 1 KB entries are appended at 100,000 per second, and to 10,000 queues at 0.7 of the speed of 10;
- 10,000 empty queues cost at most 64 MB of anonymous memory;
- a start scans at least 400 MB/s of 16 KB entries and 80,000 entries/s of 1 KB;
- rolls, fsyncs, retention and snapshots of a million entries never block the loop: 99.9 % of its
  iterations are at most 10 ms late, and the worst is at most 10 ms worse than that of an idle
  loop in another process at the same time.

And in `python -m bench store-big`, which takes 10 GB of disk and some minutes: a start with a log
of 10 GB takes at most 3 s after kill -9.

ROCKGATE_BENCH_QUICK=1 makes everything smaller, as a smoke test; such results are marked.
"""
