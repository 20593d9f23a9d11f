"""`mqadmin`: RocketMQ's commands for operators, with its names, options and columns.

A command is declared once (`command.py`): its name, its options and the coroutine that asks an
`Admin` and hands rows and sentences to an output. `parser.py` reads the command line as RocketMQ's
tools do, `output.py` prints text or JSON, `main.py` brings them together. The commands are in
`commands/`, a module a subject; packages can add their own (entry point `gantrymq.mqadmin`).
"""
