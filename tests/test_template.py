"""template.yaml, read as CloudFormation reads it: what each function may do, what is kept, what is logged, what rings.

The emulator of the deployment test ignores much of this (point-in-time recovery, log retention, access logs), so it is held here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from spendgate.observability import UNITS
from spendgate.store.tables import config_table, ledger_table

ROOT: Final = Path(__file__).parents[1]
FUNCTIONS: Final = ("Gateway", "Admin", "Catalogue", "Sweeper", "Alerts")
LEDGER: Final = "GetAtt LedgerTable.Arn"
LEDGER_INDEXES: Final = "Sub ${LedgerTable.Arn}/index/*"
CONFIG: Final = "GetAtt ConfigTable.Arn"
READ: Final = frozenset({"GetItem", "BatchGetItem", "Query"})
WRITE: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLUpdate", "PartiQLInsert"})


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms as the strings "Ref Name", "GetAtt A.B", and mappings for the rest."""


def _short(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return f"{suffix} {loader.construct_scalar(node)}"
    if isinstance(node, yaml.SequenceNode):
        return {suffix: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {suffix: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _short)
TEXT: Final = (ROOT / "template.yaml").read_text(encoding="utf-8")
TEMPLATE: Final[Mapping[str, Any]] = yaml.load(TEXT, _Loader)  # noqa: S506 - a SafeLoader
RESOURCES: Final[Mapping[str, Any]] = TEMPLATE["Resources"]

# An alias, and no other version: what is asked there is told apart by how it comes (spendgate/errands.py).
ASK: Final = (frozenset({"lambda:InvokeFunction"}), ("Ref GatewayFunction.Alias",), None)
# Everything that each role may do. `Condition` is the only thing that narrows an action within a table.
RIGHTS: Final[Mapping[str, Mapping[str, tuple[frozenset[str], tuple[str, ...], str | None]]]] = {
    "Gateway": {
        "MoveMoney": (
            frozenset(f"dynamodb:{one}" for one in (*READ, "PutItem", "UpdateItem", "ConditionCheckItem")),
            (LEDGER, LEDGER_INDEXES),
            None,
        ),
        "ReadConfiguration": (frozenset(f"dynamodb:{one}" for one in (*READ, "Scan")), (CONFIG,), None),
        "ReadProviderSecrets": (
            frozenset({"secretsmanager:GetSecretValue"}),
            ("Sub arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${SecretPrefix}*",),
            None,
        ),
        "QueueSettlements": (frozenset({"sqs:SendMessage"}), ("GetAtt SettlementQueue.Arn",), None),
        "InvokeBedrock": (
            frozenset({"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"}),
            ("Ref BedrockModelArns",),
            None,
        ),
    },
    "Admin": {
        "MoveMoneyAndConfigure": (
            frozenset(
                f"dynamodb:{one}" for one in (*READ, "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")
            ),
            (LEDGER, LEDGER_INDEXES, CONFIG),
            None,
        ),
        "ListConfiguration": (frozenset({"dynamodb:Scan"}), (CONFIG,), None),
        "TestAlerts": (frozenset({"lambda:InvokeFunction"}), ("GetAtt AlertsFunction.Arn",), None),
        "AskThroughGateway": ASK,
    },
    "Catalogue": {
        "AddPrices": (
            frozenset(f"dynamodb:{one}" for one in ("GetItem", "Query", "Scan", "PutItem")),
            (CONFIG,),
            None,
        ),
        "WriteEvents": (frozenset({"dynamodb:PutItem"}), (LEDGER,), "EVENT#*"),
    },
    "Sweeper": {
        "MoveMoney": (
            frozenset(
                f"dynamodb:{one}" for one in (*READ, "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")
            ),
            (LEDGER, LEDGER_INDEXES),
            None,
        ),
        "ReadConfiguration": (frozenset(f"dynamodb:{one}" for one in ("GetItem", "Query", "Scan")), (CONFIG,), None),
        "TakeSettlements": (
            frozenset({"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}),
            ("GetAtt SettlementQueue.Arn",),
            None,
        ),
        "AskThroughGateway": ASK,
    },
    "Alerts": {
        "ReadLedgerAndConfiguration": (
            frozenset(f"dynamodb:{one}" for one in READ),
            (LEDGER, LEDGER_INDEXES, CONFIG),
            None,
        ),
        "MarkWhatWasTold": (frozenset({"dynamodb:PutItem", "dynamodb:DeleteItem"}), (LEDGER,), "ALERT#*"),
        "Publish": (frozenset({"sns:Publish"}), ("Ref AlertsTopic",), None),
    },
}
# Of every role, where a key of the customer's is in use; it can name one key only.
USE_KEY: Final = (frozenset({"kms:Decrypt", "kms:GenerateDataKey"}), ("Ref KmsKeyArn",), None)


def _function(name: str) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = RESOURCES[f"{name}Function"]["Properties"]
    return properties


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _statements(name: str) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Yield each statement of a role, with the condition that switches it on."""
    for policy in _function(name)["Policies"]:
        for one in policy["Statement"]:
            if "If" in one:
                condition, statement, other = one["If"]
                assert other == "Ref AWS::NoValue"
                yield condition, statement
            else:
                yield None, one


def _of_type(kind: str) -> dict[str, Mapping[str, Any]]:
    return {name: one for name, one in RESOURCES.items() if one["Type"] == kind}


@pytest.mark.parametrize(
    "logical, definition", [("LedgerTable", ledger_table("t")), ("ConfigTable", config_table("t"))]
)
def test_the_deployed_tables_have_the_keys_and_indexes_of_the_local_ones(
    logical: str, definition: dict[str, Any]
) -> None:
    properties = RESOURCES[logical]["Properties"]

    for name in ("KeySchema", "BillingMode"):
        assert properties[name] == definition[name]
    by_name = sorted(definition.get("GlobalSecondaryIndexes", ()), key=lambda one: str(one["IndexName"]))
    assert sorted(properties.get("GlobalSecondaryIndexes", ()), key=lambda one: str(one["IndexName"])) == by_name
    assert {one["AttributeName"] for one in properties["AttributeDefinitions"]} == {
        one["AttributeName"] for one in definition["AttributeDefinitions"]
    }


@pytest.mark.parametrize("logical", ["LedgerTable", "ConfigTable"])
def test_a_table_outlives_the_stack_and_can_be_brought_back(logical: str) -> None:
    resource = RESOURCES[logical]

    assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"
    assert resource["Properties"]["DeletionProtectionEnabled"] is True
    assert resource["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert resource["Properties"]["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}


def test_queued_settlements_outlive_the_stack_too() -> None:
    for logical in ("SettlementQueue", "SettlementDeadLetters"):
        assert RESOURCES[logical]["DeletionPolicy"] == RESOURCES[logical]["UpdateReplacePolicy"] == "Retain"
        assert RESOURCES[logical]["Properties"]["MessageRetentionPeriod"] == 14 * 24 * 3600
    redrive = RESOURCES["SettlementQueue"]["Properties"]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == "GetAtt SettlementDeadLetters.Arn"
    # AWS advises six times the consumer's timeout.
    visibility = RESOURCES["SettlementQueue"]["Properties"]["VisibilityTimeout"]
    assert visibility >= 6 * _function("Sweeper")["Timeout"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_role_may_do_exactly_what_is_listed(name: str) -> None:
    found = {}
    for _, statement in _statements(name):
        assert statement["Effect"] == "Allow"
        keys = (statement.get("Condition") or {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys")
        assert (keys is None) == ("Condition" not in statement)
        found[statement["Sid"]] = (
            frozenset(_listed(statement["Action"])),
            tuple(_listed(statement["Resource"])),
            None if keys is None else ",".join(keys),
        )

    assert found == {**RIGHTS[name], "UseKey": USE_KEY}


def test_no_role_has_a_wildcard_but_over_the_indexes_of_a_table_and_the_prefix_of_secrets() -> None:
    wildcards = {
        (name, resource)
        for name in FUNCTIONS
        for _, statement in _statements(name)
        for resource in _listed(statement["Resource"])
        if "*" in resource
    }

    assert not any(
        "*" in action for name in FUNCTIONS for _, one in _statements(name) for action in _listed(one["Action"])
    )
    secrets = RIGHTS["Gateway"]["ReadProviderSecrets"][1][0]
    # An index's ARN is its table's with its name; a secret's ends in six random characters.
    assert wildcards == {
        *((name, LEDGER_INDEXES) for name in ("Gateway", "Admin", "Sweeper", "Alerts")),
        ("Gateway", secrets),
    }


def test_only_the_gateway_reads_secrets_and_only_three_can_move_money() -> None:
    reads, moves = set(), set()
    for name in FUNCTIONS:
        for _, statement in _statements(name):
            actions = {one.partition(":") for one in _listed(statement["Action"])}
            if any(service == "secretsmanager" for service, _, _ in actions):
                reads.add(name)
            writes = any(service == "dynamodb" and action in WRITE for service, _, action in actions)
            if writes and LEDGER in _listed(statement["Resource"]) and "Condition" not in statement:
                moves.add(name)

    assert reads == {"Gateway"}
    assert moves == {"Gateway", "Admin", "Sweeper"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_change_of_anything_publishes_a_version_and_moves_the_alias(name: str) -> None:
    assert TEMPLATE["Globals"]["Function"]["AutoPublishAlias"] == "live"
    assert _function(name)["AutoPublishAliasAllProperties"] is True


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_functions_log_is_its_own_and_ends(name: str) -> None:
    assert _function(name)["LoggingConfig"] == {"LogGroup": f"Ref {name}Log"}


def test_every_log_group_has_a_retention() -> None:
    groups = _of_type("AWS::Logs::LogGroup")

    assert len(groups) == len(FUNCTIONS) + 1
    assert all(one["Properties"] == {"RetentionInDays": "Ref LogRetentionDays"} for one in groups.values())


def test_the_gateways_methods_stream_for_as_long_as_the_function_runs() -> None:
    events = _function("Gateway")["Events"]

    assert {one["Properties"]["Path"] for one in events.values()} == {
        "/v1/{proxy+}",
        "/v1beta/{proxy+}",
        "/model/{proxy+}",
        "/healthz",
    }
    for name, one in events.items():
        assert one["Properties"]["ResponseTransferMode"] == "RESPONSE_STREAM"
        assert one["Properties"]["TimeoutInMillis"] == (29_000 if name == "Health" else 900_000)
        assert "Auth" not in one["Properties"]
    assert _function("Gateway")["Timeout"] == 900
    # Time to settle, and to say so in the stream, before the platform ends both.
    assert int(_function("Gateway")["Environment"]["Variables"]["SPENDGATE_CALL_SECONDS_MAX"]) <= 895


def test_the_admin_api_asks_for_iam_and_calls_by_its_own_right() -> None:
    (event,) = _function("Admin")["Events"].values()

    assert event["Properties"]["Path"] == "/admin/{proxy+}"
    # InvokeRole NONE leaves `credentials` out; SAM's default would call the function as the caller.
    assert event["Properties"]["Auth"] == {"Authorizer": "AWS_IAM", "InvokeRole": "NONE"}


def test_the_access_log_tells_no_path_no_query_no_header_and_no_body() -> None:
    (condition, setting, _) = RESOURCES["Api"]["Properties"]["AccessLogSetting"]["If"]

    assert condition == "HasApiLogging"
    fields = json.loads(setting["Format"])
    for value in fields.values():
        assert re.fullmatch(r"\$context\.[A-Za-z.]+", value)
        # resourcePath is the template of the path, and what stands for the rest is written out.
        assert value != "$context.path"
        assert not re.search(r"header|query|body|apikey|authorizer", value, re.IGNORECASE)
    (settings,) = RESOURCES["Api"]["Properties"]["MethodSettings"]
    assert settings["DataTraceEnabled"] is False


def test_secrets_are_references() -> None:
    assert not any("NoEcho" in one for one in TEMPLATE["Parameters"].values())
    assert not _of_type("AWS::SecretsManager::Secret")
    assert "{{resolve:" not in TEXT
    for name in FUNCTIONS:
        for variable in _function(name).get("Environment", {}).get("Variables", {}):
            assert not re.search(r"SECRET|TOKEN|PASSWORD|API_KEY", variable)


def test_every_alarm_looks_at_a_metric_that_is_emitted() -> None:
    platform = {
        "AWS/Lambda": {"Errors", "Throttles"},
        "AWS/SQS": {"ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"},
    }
    for name, alarm in _of_type("AWS::CloudWatch::Alarm").items():
        properties = alarm["Properties"]
        namespace, metric = properties["Namespace"], properties["MetricName"]
        if namespace == "Spendgate":
            assert metric in {*UNITS, *_emitted()}, name
            # The dimensions of an alarm are all of the metric's, or it never sees a value.
            assert properties["Dimensions"] == [{"Name": "service", "Value": "Ref AWS::StackName"}]
        else:
            assert metric in platform[namespace], name


def test_every_metric_of_the_dashboard_is_emitted() -> None:
    body = json.loads(RESOURCES["Dashboard"]["Properties"]["DashboardBody"].removeprefix("Sub "))
    known = {*UNITS, *_emitted(), "Errors", "Throttles"}
    named: list[str] = []
    for widget in body["widgets"]:
        for metric in widget["properties"]["metrics"]:
            named += [one for one in metric[1:2] if isinstance(one, str) and not one.startswith("${")]

    assert named
    assert set(named) <= known


def test_every_alarm_says_what_to_do_and_tells_people() -> None:
    alarms = _of_type("AWS::CloudWatch::Alarm")

    assert len(alarms) > 10
    for name, alarm in alarms.items():
        properties = alarm["Properties"]
        assert properties["AlarmActions"] == ["Ref AlarmsTopic"], name
        assert "TreatMissingData" in properties, name
        # A sentence on what it is, and one more.
        assert len(re.findall(r"[.?;](?: |$)", properties["AlarmDescription"])) >= 2, name


def test_every_alarm_and_every_parameter_stands_in_the_guides() -> None:
    operations, deploy = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("operations.md", "deploy.md"))

    section = operations.split("## When an alarm rings\n")[1].split("\n## ")[0]
    assert _in_first_cells(section) == set(_of_type("AWS::CloudWatch::Alarm"))
    section = deploy.split("## Parameters\n")[1].split("\n## ")[0]
    assert _in_first_cells(section) == set(TEMPLATE["Parameters"])


def _in_first_cells(section: str) -> set[str]:
    """Return what stands in backquotes in the first column of a table."""
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_every_function_has_an_alarm_on_its_errors() -> None:
    watched = {
        alarm["Properties"]["Dimensions"][0]["Value"]
        for alarm in _of_type("AWS::CloudWatch::Alarm").values()
        if alarm["Properties"]["MetricName"] == "Errors"
    }

    assert watched == {f"Ref {name}Function" for name in FUNCTIONS}


def test_every_parameter_and_condition_is_used_and_has_a_sound_default() -> None:
    below = TEXT[TEXT.index("\nConditions:") :]
    for name, parameter in TEMPLATE["Parameters"].items():
        assert re.search(rf"(!Ref {name}\b|\$\{{{name}\}})", below), name
        assert "Default" in parameter, name
        pattern = parameter.get("AllowedPattern")
        assert pattern is None or re.fullmatch(pattern, str(parameter["Default"])), name
    for name in TEMPLATE["Conditions"]:
        used = re.search(rf"(Condition: {name}\b|!If \[{name},|- {name}\n)", TEXT)
        assert used, name


def test_what_a_condition_makes_is_referred_to_under_the_same_condition_only() -> None:
    conditional = {name: one["Condition"] for name, one in RESOURCES.items() if "Condition" in one}

    for name, one in RESOURCES.items():
        for logical, under in _references(one, {one["Condition"]} if "Condition" in one else set()):
            assert conditional.get(logical) is None or conditional[logical] in under, f"{name} -> {logical}"


def test_no_name_is_fixed_so_that_two_stacks_live_side_by_side() -> None:
    named = {
        (logical, key)
        for logical, one in RESOURCES.items()
        for key, value in one.get("Properties", {}).items()
        if re.fullmatch(
            r"(Function|Table|Queue|Topic|Bucket|Role|LogGroup|Alarm|Policy|Dashboard|Configuration)Name", key
        )
        and "${AWS::StackName}" not in str(value)
    }

    assert named == set()


def _references(value: Any, under: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield each resource that a value refers to, with the conditions that hold there."""
    if isinstance(value, str):
        kind, _, rest = value.partition(" ")
        if kind in ("Ref", "GetAtt"):
            yield rest.partition(".")[0], under
        if kind == "Sub":
            for name in re.findall(r"\$\{([A-Za-z]+)(?:\.[A-Za-z]+)?\}", rest):
                yield name, under
    elif isinstance(value, list):
        for one in value:
            yield from _references(one, under)
    elif isinstance(value, Mapping):
        if "If" in value:
            condition, when, otherwise = value["If"]
            yield from _references(when, under | {condition})
            yield from _references(otherwise, under)
        else:
            for one in value.values():
                yield from _references(one, under)


def _emitted() -> set[str]:
    """Return the names that the code hands to Powertools' metrics."""
    code = "".join(one.read_text(encoding="utf-8") for one in (ROOT / "layers/core/spendgate").glob("*.py"))
    return set(re.findall(r'"(\w+)"', "".join(re.findall(r"add_metric\(name=.*|for name, amount in .*", code))))
