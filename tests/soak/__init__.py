"""A long load with kills: many connections and topics, slow and dead clients among them.

`make soak` runs an hour, `make soak MINUTES=5` less. A name server and a broker with SYNC_FLUSH run
as processes; this program sends at 70 % of what they can take, kills the broker with SIGKILL again
and again, and reads back every message that was acknowledged.

    server         the processes, and what the system says about the broker
    load           the sending connections and their pace
    misfits        clients that are slow, dead or silent
    acknowledged   what was acknowledged, and whether it is still there
    figures        percentiles and slopes
    __main__       the run, its table and its verdict
"""
