"""Bodies of messages as people read them. Bytes in, text out, nothing unbounded.

    limits       how deep, how many and how long; what a decoder raises
    avro         Avro bodies, with a schema in JSON
    proto_types  message and enum types of Protocol Buffers
    proto_file   those types from the text of a .proto file
    proto_wire   Protocol Buffers bodies, with types or without; types from a FileDescriptorSet
    plain        JSON, MessagePack, text, and bytes in hexadecimal
    forms        one body in a form that was asked for, or in the form that suits it

The decoders are our own, because bodies come from strangers: each ends after a bounded number of
values and a bounded depth, whatever the bytes say.
"""
