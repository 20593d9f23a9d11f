"""What of a message people may not see: rules, and what they leave of bodies and properties.

    rules    a rule, and which topics it is about
    paths    fields of a value by path
    patterns regular expressions that end in linear time
    masker   the rules of one message at work

Rules are applied before anything leaves the console: pages, API, tail, downloads, exports. Where a
rule cannot tell where its field stands in a body, the whole body is withheld.
"""
