"""What all pipelines share: selection of messages, progress, the frame of a run, page style."""
