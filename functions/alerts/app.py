"""The alerts' function: each minute it tells people what is to be told; for ``{"test": true}`` one alert of each kind."""

import os
from typing import Any

from aws_lambda_powertools import Metrics

from spendgate.alerts import alert, send_samples
from spendgate.observability import JsonLog
from spendgate.settings import read
from spendgate.store.notify import Topic, sns
from spendgate.wiring import stores, utc_now

log = JsonLog()
metrics = Metrics()
settings = read(os.environ)
ledger, config = stores(settings)
stack = os.environ["SPENDGATE_STACK"]
topic = Topic(os.environ["SPENDGATE_ALERTS_TOPIC_ARN"], lambda: sns(region=settings.region))


@metrics.log_metrics
def handler(event: dict[str, Any], _: object) -> dict[str, int]:
    if event.get("test") is True:
        report = send_samples(topic, utc_now(), stack=stack)
    else:
        report = alert(ledger, config, topic, utc_now(), log=log, stack=stack)
    return report.counted(metrics.add_metric)
