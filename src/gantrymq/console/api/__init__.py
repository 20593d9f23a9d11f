"""The REST API: each endpoint is declared once, with the types of its question and its answer.

    endpoint     an endpoint, and the table of all of them
    ask          who asks, about which cluster
    http         endpoints as HTTP: values from path, query or body, answers as JSON
    openapi      the OpenAPI document, from the table
    all          every endpoint of every subject

A subject is a module: `overview`, `topics`, `groups`, `messages`, `letters`, `waiting` and so on.
"""
