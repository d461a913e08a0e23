"""The operators' function: the admin API behind API Gateway, for those whom IAM lets in."""

import os
import secrets
from pathlib import Path

from spendgate.admin import Admin
from spendgate.admin_resolver import AdminApi
from spendgate.catalogue_files import catalogue_in
from spendgate.observability import JsonLog
from spendgate.settings import read
from spendgate.wiring import stores, utc_now

# The shipped prices, packed with the catalogue's function and with this one.
PRICES = Path(__file__).parents[1] / "catalogue" / "prices"
ledger, config = stores(read(os.environ))
admin = Admin(ledger, config, clock=utc_now, randomness=secrets.token_bytes, catalogue=catalogue_in(PRICES))
handler = AdminApi(admin, JsonLog())
