"""The least that a broker has to do, as a C program, to compare ours with: `limit.c` says what."""
