"""Messages that wait for a time of their own, to the millisecond.

They lie in the topic rmq_sys_wheel_timer until they are due. Everything else here is derived from
that topic: in memory one number a message, on disk how far delivery has come.
"""
