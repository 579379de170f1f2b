"""`unstuck.DataLoader`: a bad sample costs that sample, a dead worker nothing.

DataLoader ──▶ iterators (torch's own, order and seeding untouched)
                  └──▶ WorkerPool ──▶ Seat ──▶ wire ═══ worker: SampleCare
                            └──▶ Quarantine

The pool stands where torch expects a multiprocessing context: its queues and processes are seats, each with a channel
of its own, whose worker is replaced when it dies or hangs.
"""
