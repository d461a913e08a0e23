"""The catalogue's function: at a deployment and once a day it adds the shipped prices that are not stored."""

import os
from pathlib import Path
from typing import Any

from aws_lambda_powertools import Metrics

from spendgate.catalogue_deploy import deploy
from spendgate.catalogue_files import all_rows, catalogue_in
from spendgate.custom_resource import answer, is_request
from spendgate.observability import JsonLog
from spendgate.providers.signed_put import signed_put
from spendgate.settings import read
from spendgate.wiring import stores, utc_now

PRICES = Path(__file__).with_name("prices")
log = JsonLog()
metrics = Metrics()
_, config = stores(read(os.environ))


@metrics.log_metrics
def handler(event: dict[str, Any], _: object) -> dict[str, Any]:
    def work() -> dict[str, str]:
        found = deploy(config, all_rows(PRICES), catalogue_in(PRICES), now=utc_now(), log=log)
        return found.counted(metrics.add_metric)

    if is_request(event):
        return {"status": answer(event, work, resource_id="catalogue", put=signed_put, log=log)["Status"]}
    return work()
