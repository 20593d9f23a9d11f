"""`gantry store`: commands that work on the folder of a broker's store."""
