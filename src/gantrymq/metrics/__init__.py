"""What servers tell about themselves in numbers: Prometheus reads it, or it is pushed.

Every metric is declared once, in `table`. Collectors (`process` here, `broker.metrics` and
`nameserver.metrics`) turn what a server counts anyway into samples when somebody asks; `scrape`
runs them in slices, `text` writes Prometheus' format, `http` and `access` are the port, `exporter`
chooses by `metricsExporterType`.
"""
