"""How fast does the store take messages in and start again, and how long does it hold the loop?

Defends, in `python -m bench store`:
- a 16 KB batch appended, everything included (envelope, checksums, unit, populated pages, rolls),
  takes at most half the time of a plain `pwritev` of the same bytes in the same run;
- 1 KB entries go in at 100,000 a second, and 10,000 queues take them at 0.7 of the speed of 10;
- 10,000 empty queues cost at most 64 MB of anonymous memory;
- a start scans at least 400 MB/s of 16 KB entries and 80,000 entries/s of 1 KB;
- rolls, fsyncs, retention and snapshots of a million entries never hold the loop: 99.9 % of its
  turns come within 10 ms of their time, and the worst is at most 10 ms worse than that of an idle
  loop in a process beside it.

And in `python -m bench store-big`, which takes 10 GB of disk and some minutes: a start after
kill -9 with a log of 10 GB takes at most 3 s.

ROCKGATE_BENCH_QUICK=1 makes everything smaller, to see that it runs; such figures are marked.
"""
