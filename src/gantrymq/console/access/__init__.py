"""Who may come in: users and sessions, requests of other sites, headers; and the audit trail."""
