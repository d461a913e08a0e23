"""The operators' function: the admin API behind API Gateway, for those whom IAM lets in."""

import os
import secrets
from functools import partial
from pathlib import Path

from spendgate.admin import Admin
from spendgate.admin_resolver import AdminApi
from spendgate.asking_gateway import through_gateway
from spendgate.catalogue_files import catalogue_in
from spendgate.observability import JsonLog
from spendgate.settings import read
from spendgate.store.invoke import ask_gateway, send_test_alerts
from spendgate.wiring import stores, utc_now

# The shipped prices, packed with the catalogue's function and with this one.
PRICES = Path(__file__).parents[1] / "catalogue" / "prices"
settings = read(os.environ)
ledger, config = stores(settings)
admin = Admin(
    ledger,
    config,
    clock=utc_now,
    randomness=secrets.token_bytes,
    catalogue=catalogue_in(PRICES),
    recover=through_gateway(partial(ask_gateway, os.environ["SPENDGATE_GATEWAY_FUNCTION"], region=settings.region)),
    alert_tester=lambda: send_test_alerts(os.environ["SPENDGATE_ALERTS_FUNCTION"], region=settings.region),
)
handler = AdminApi(admin, JsonLog())
