"""The broker: `app` lists its parts, `routes` what it answers, `handlers` how."""
