"""Archives, reports and replays: the Spark pipelines of a cluster, each run as a job.

command      a `gantry pipeline` command as a process, with its progress
places       the folders and names of archives and reports
overview     what there is, and a report's files
work         archive, replay and report as jobs
"""
