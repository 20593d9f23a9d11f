"""HTML pages, one module a subject: each asks functions of the API and fills a template.

    page         a page or an act, declared once; what both have of a request (`View`)
    rendering    templates, and how figures and times are shown
    all          every page of every subject

A page shows something. An act is what a form or button does: it calls a changing endpoint and
answers with one sentence, which the page shows above its content.
"""
