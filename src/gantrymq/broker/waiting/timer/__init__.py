"""Timer messages: each waits for its own delivery time, to the millisecond.

They lie in the topic rmq_sys_wheel_timer until they are due. Everything else is derived from that
topic: in memory one number a message, on disk the progress of delivery.
"""
