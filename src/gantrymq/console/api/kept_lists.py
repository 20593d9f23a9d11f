"""What the console keeps for people: saved filters, schemas of topics, masking rules."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.decoding.forms import BodyForm, check_schema
from gantrymq.console.api.endpoint import Answer, Done, EndpointTable, OfCluster
from gantrymq.console.api.kept import KeptList
from gantrymq.console.api.masking.rules import RULES_MAX, MaskKind, MaskRule, check_rule
from gantrymq.console.api.seen import KeptSchema, rules_of, schemas_of
from gantrymq.console.errors import BadInput, NotThere

TABLE = EndpointTable("messages")

FILTERS_MAX: Final = 500
SCHEMAS_MAX: Final = 100

Name = Annotated[str, Meta(min_length=1, max_length=100)]


class SavedFilter(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A search under a name."""

    name: str
    topic: str
    query: str
    """The fields of the search, as in the address of the page."""
    user: str = ""
    """Who saved it."""


class SavedFilters(Answer, frozen=True, kw_only=True):
    filters: list[SavedFilter]


class NewFilter(OfCluster, frozen=True, kw_only=True):
    """A search to keep."""

    name: Name
    topic: Annotated[str, Meta(max_length=255)]
    query: Annotated[str, Meta(max_length=8000)]


class NamedFilter(OfCluster, frozen=True, kw_only=True):
    name: Name


class KeptSchemas(Answer, frozen=True, kw_only=True):
    schemas: list[KeptSchema]


class NewSchema(OfCluster, frozen=True, kw_only=True):
    """A schema for the bodies of topics."""

    topic: Annotated[str, Meta(min_length=1, max_length=255)]
    """A topic, or several: `payment-*`."""
    form: BodyForm
    """avro or protobuf"""
    text: Annotated[str, Meta(min_length=1, max_length=200_000)]
    message: Annotated[str, Meta(max_length=255)] = ""


class NumberedThing(OfCluster, frozen=True, kw_only=True):
    id: str


class MaskRules(Answer, frozen=True, kw_only=True):
    rules: list[MaskRule]


class NewRule(OfCluster, frozen=True, kw_only=True):
    """What to mask in the messages of topics."""

    topic: Annotated[str, Meta(min_length=1, max_length=255)]
    """A topic, or several: `payment-*`."""
    kind: MaskKind
    what: Annotated[str, Meta(min_length=1, max_length=300)]
    """A path, the name of a property, or a regular expression."""


def _filters(ask: Ask, cluster: str) -> KeptList[SavedFilter]:
    ask.clusters.address(cluster)
    return KeptList(ask.parts.settings.data, cluster, "filters", SavedFilter)


@TABLE.get("/clusters/{cluster}/filters")
async def list_filters(ask: Ask, wanted: OfCluster) -> SavedFilters:
    """The searches that people saved."""
    return SavedFilters(filters=await _filters(ask, wanted.cluster).read())


@TABLE.post("/clusters/{cluster}/filters")
async def save_filter(ask: Ask, wanted: NewFilter) -> Done:
    """Keep a search under a name; an earlier one of that name goes."""
    made = SavedFilter(name=wanted.name, topic=wanted.topic, query=wanted.query, user=ask.user.name)

    def edit(before: list[SavedFilter]) -> list[SavedFilter]:
        others = [each for each in before if each.name != wanted.name]
        if len(others) >= FILTERS_MAX:
            raise BadInput(f"{FILTERS_MAX} filters are saved already: remove one")
        return sorted([*others, made], key=lambda each: each.name)

    await _filters(ask, wanted.cluster).change(edit)
    return Done(text=f"filter {wanted.name!r} is saved")


@TABLE.delete("/clusters/{cluster}/filters/{name}")
async def delete_filter(ask: Ask, wanted: NamedFilter) -> Done:
    """Remove a saved search."""

    def edit(before: list[SavedFilter]) -> list[SavedFilter]:
        others = [each for each in before if each.name != wanted.name]
        if len(others) == len(before):
            raise NotThere(f"no filter {wanted.name!r} is saved")
        return others

    await _filters(ask, wanted.cluster).change(edit)
    return Done(text=f"filter {wanted.name!r} is removed")


@TABLE.get("/clusters/{cluster}/schemas")
async def list_schemas(ask: Ask, wanted: OfCluster) -> KeptSchemas:
    """The schemas with which bodies of topics are read."""
    ask.clusters.address(wanted.cluster)
    return KeptSchemas(schemas=await schemas_of(ask, wanted.cluster).read())


@TABLE.post("/clusters/{cluster}/schemas")
async def keep_schema(ask: Ask, wanted: NewSchema) -> Done:
    """Keep a schema for the bodies of topics; an admin of the console does that."""
    ask.check_admin()
    ask.clusters.address(wanted.cluster)
    made = KeptSchema(
        id="", topic=wanted.topic, form=wanted.form, text=wanted.text, message=wanted.message
    )
    check_schema(made.schema)

    def edit(before: list[KeptSchema]) -> list[KeptSchema]:
        if len(before) >= SCHEMAS_MAX:
            raise BadInput(f"{SCHEMAS_MAX} schemas are kept already: remove one")
        return [*before, msgspec.structs.replace(made, id=_next_id([each.id for each in before]))]

    await schemas_of(ask, wanted.cluster).change(edit)
    return Done(text=f"bodies of {wanted.topic} are read as {wanted.form.value} with this schema")


@TABLE.delete("/clusters/{cluster}/schemas/{id}")
async def delete_schema(ask: Ask, wanted: NumberedThing) -> Done:
    """Remove a schema; an admin of the console does that."""
    ask.check_admin()
    ask.clusters.address(wanted.cluster)

    def edit(before: list[KeptSchema]) -> list[KeptSchema]:
        others = [each for each in before if each.id != wanted.id]
        if len(others) == len(before):
            raise NotThere(f"no schema {wanted.id!r} is kept")
        return others

    await schemas_of(ask, wanted.cluster).change(edit)
    return Done(text="the schema is removed")


@TABLE.get("/clusters/{cluster}/masking")
async def list_mask_rules(ask: Ask, wanted: OfCluster) -> MaskRules:
    """What nobody sees of messages."""
    ask.clusters.address(wanted.cluster)
    return MaskRules(rules=await rules_of(ask, wanted.cluster).read())


@TABLE.post("/clusters/{cluster}/masking")
async def add_mask_rule(ask: Ask, wanted: NewRule) -> Done:
    """Mask a field, a property or a pattern in messages; an admin of the console does that."""
    ask.check_admin()
    ask.clusters.address(wanted.cluster)
    made = MaskRule(id="", topic=wanted.topic, kind=wanted.kind, what=wanted.what)
    check_rule(made)

    def edit(before: list[MaskRule]) -> list[MaskRule]:
        if len(before) >= RULES_MAX:
            raise BadInput(f"there are {RULES_MAX} rules already: remove one")
        return [*before, msgspec.structs.replace(made, id=_next_id([each.id for each in before]))]

    await rules_of(ask, wanted.cluster).change(edit)
    return Done(text=f"{wanted.kind.value} {wanted.what!r} is masked in messages of {wanted.topic}")


@TABLE.delete("/clusters/{cluster}/masking/{id}")
async def delete_mask_rule(ask: Ask, wanted: NumberedThing) -> Done:
    """Remove a masking rule; an admin of the console does that."""
    ask.check_admin()
    ask.clusters.address(wanted.cluster)

    def edit(before: list[MaskRule]) -> list[MaskRule]:
        others = [each for each in before if each.id != wanted.id]
        if len(others) == len(before):
            raise NotThere(f"there is no rule {wanted.id!r}")
        return others

    await rules_of(ask, wanted.cluster).change(edit)
    return Done(text="the rule is removed")


def _next_id(used: list[str]) -> str:
    return str(max((int(each) for each in used if each.isdecimal()), default=0) + 1)
