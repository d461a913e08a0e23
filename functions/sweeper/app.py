"""The sweeper's function: each minute it sweeps, asking providers through the gateway; and settlements of the queue it settles."""

import os
import sys
from datetime import timedelta
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from spendgate.asking import Asking
from spendgate.asking_gateway import through_gateway
from spendgate.calls import NO_METRICS
from spendgate.observability import JsonLog, metrics_of
from spendgate.settings import read
from spendgate.settlements import settle_message
from spendgate.store.invoke import ask_gateway
from spendgate.sweep import SWEEPER
from spendgate.sweep_minute import ASK_SECONDS_MAX, minute
from spendgate.wiring import stores, utc_now

log = JsonLog()
metrics = metrics_of(os.environ, stream=sys.stdout, now=utc_now) or NO_METRICS
settings = read(os.environ)
ledger, config = stores(settings)
charge_after = timedelta(hours=int(os.environ["SPENDGATE_CHARGE_UNKNOWN_AFTER_HOURS"]))
ask = partial(
    ask_gateway, os.environ["SPENDGATE_GATEWAY_FUNCTION"], region=settings.region, read_seconds=ASK_SECONDS_MAX
)
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)


def handler(event: dict[str, Any], context: Any) -> Any:
    if "Records" in event:
        return process_partial_response(event=event, record_handler=settle, processor=processor, context=context)
    asking = Asking(config.provider, through_gateway(ask), SWEEPER)
    return minute(ledger, utc_now(), charge_after=charge_after, metrics=metrics, log=log, asking=asking)


def settle(record: SQSRecord) -> None:
    settle_message(ledger, record.body, record.attributes.approximate_receive_count, now=utc_now(), log=log)
