"""Servers and clients as processes, one fault at a time, and a judge of what was kept.

    PYTHONPATH=tests python -m chaos --mode sync-master --fault leader-kill --seed 7

A run takes *modes* (which brokers run together, how they flush and copy) through *faults* (the
fifteen that OpenChaos defines, and three of disks). Each mode has a cluster of its own: a name
server and its brokers, each a process on a host of its own, and on one more host the clients. A
host is a network namespace; the switch between them is a process of ours, which forwards, cuts and
loses packets as it is told, because kernels without `netem` and `nft` are common. Where no
namespaces can be made, hosts are loopback addresses with a relay before each server.

A *trial* is the time of one fault. It has a topic of its own:

1. writers send numbered messages to their queues, one at a time each, and log every send: when it
   began and ended, and whether it was `ok`, `stored` less safely than asked for, `failed` for
   certain, or of `unknown` outcome;
2. after a calm second the fault begins, and some seconds later it is undone;
3. when every queue takes messages again, the master is killed for good, while writers write;
4. what its slave has is read, which is what would be left if the machine were lost;
5. the master is started again and all queues are read.

The checker compares what was sent and what was read, as Jepsen's queue and total-order checkers do:
lost, duplicated, out of order, phantom, and how long no message was taken. A mode *promises* which
of these stay zero; one that does not is a broken promise and the run ends with exit code 1.

Decisions are pure and have tests in this folder: `faults` (what a fault does to whom, from a seed),
`links` (which packets pass), `modes`, `history`, `checker`, `promises`, `table`. The rest acts:
`network` and `switch`, `loopback` and `relay`, `nodes`, `disk` and `faulty_broker`, `clients`,
`client_program` and `java`, `cluster`, `trial` and `run`.
"""
