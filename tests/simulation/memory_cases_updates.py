"""Updates, and what of them DynamoDB does not take."""

from __future__ import annotations

from typing import Final

from tests.simulation.memory_cases import (
    CANCELLED,
    INVALID,
    ITEM,
    OTHER,
    Case,
    X,
    item,
    touched,
    transaction,
    update,
)

UPDATES: Final = (
    Case(
        name="ADD begins a counter, and adds to one",
        operation="update_item",
        request=update("ADD #n :a, #m :b", n_n="n", n_m="m", v_a={"N": "-7"}, v_b={"N": "0"}),
        after=item(n={"N": "-2"}, m={"N": "0"}),
    ),
    Case(
        name="ADD to what is no number",
        operation="update_item",
        request=update("ADD #s :a", n_s="s", v_a={"N": "1"}),
        code=INVALID,
    ),
    Case(
        name="ADD to what is no number, in a transaction",
        operation="transact_write_items",
        request=transaction(update("ADD #s :a", n_s="s", v_a={"N": "1"})),
        code=f"{CANCELLED} ValidationError",
    ),
    Case(
        name="a sum of more than 38 digits",
        operation="update_item",
        request=update("ADD #n :a", n_n="n", v_a={"N": "9" * 38}),
        code=INVALID,
        emulator="",
    ),
    Case(
        name="a number of more than 38 digits",
        operation="update_item",
        request=update("SET #n = :a", n_n="n", v_a={"N": "9" * 39}),
        code=INVALID,
    ),
    Case(
        name="38 digits",
        operation="update_item",
        request=update("SET #n = :a", n_n="n", v_a={"N": "9" * 38}),
        after=item(n={"N": "9" * 38}),
    ),
    Case(
        name="a number is kept without its zeros in front",
        operation="update_item",
        request=update("SET #n = :a", n_n="n", v_a={"N": "-007"}),
        after=item(n={"N": "-7"}),
    ),
    Case(
        name="an update sets, adds and removes at once",
        operation="update_item",
        request=update("SET #x = :x REMOVE #s ADD #n :a", n_x="x", n_s="s", n_n="n", v_x=X, v_a={"N": "1"}),
        after=item(x=X, s=None, n={"N": "6"}),
    ),
    Case(
        name="what is there is not set again by if_not_exists",
        operation="update_item",
        request=update("SET #s = if_not_exists(#s, :x), #x = if_not_exists(#x, :x)", n_s="s", n_x="x", v_x=X),
        after=item(x=X),
    ),
    Case(
        name="an update makes an item that is not there",
        operation="update_item",
        request=update("ADD #n :a", n_n="n", key=OTHER, v_a={"N": "1"}),
        after=ITEM,
    ),
    Case(
        name="one attribute twice",
        operation="update_item",
        request=update("SET #s = :x REMOVE #t", n_s="s", n_t="s", v_x=X),
        code=INVALID,
        emulator="",
    ),
    Case(
        name="one clause twice",
        operation="update_item",
        request=update("SET #s = :x SET #x = :x", n_s="s", n_x="x", v_x=X),
        code=INVALID,
        emulator="",
    ),
    Case(
        name="an update of a key",
        operation="update_item",
        request=update("SET #s = :x", n_s="sk", v_x=X),
        code=INVALID,
    ),
    Case(
        name="an empty update",
        operation="update_item",
        request=update(""),
        code=INVALID,
    ),
    Case(
        name="a name that is not used",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", n_y="y", v_x=X),
        code=INVALID,
    ),
    Case(
        name="a value that is not used",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x=X, v_y=X),
        code=INVALID,
    ),
    Case(
        name="a name that is not given",
        operation="update_item",
        request=update("SET #x = :x, #y = :x", n_x="x", v_x=X),
        code=INVALID,
    ),
    Case(
        name="a value that is not given",
        operation="update_item",
        request=update("SET #x = :x, #y = :y", n_x="x", n_y="y", v_x=X),
        code=INVALID,
    ),
    Case(
        name="a key of another table",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x=X, key={"pk": {"S": "p"}}),
        code=INVALID,
    ),
    Case(
        name="an empty key",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x=X, key={"pk": {"S": "p"}, "sk": {"S": ""}}),
        code=INVALID,
    ),
    Case(
        name="an empty text beside the key",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x={"S": ""}),
        after=item(x={"S": ""}),
    ),
    Case(
        name="an index's key that is no text",
        operation="update_item",
        request=update("SET #x = :x", n_x="tree_sk", v_x={"N": "1"}),
        code=INVALID,
    ),
    Case(
        name="an index's key that is empty",
        operation="update_item",
        request=update("SET #x = :x", n_x="tree_sk", v_x={"S": ""}),
        code=INVALID,
    ),
    Case(
        name="an expression of more than 4 KB",
        operation="update_item",
        request=touched(" OR ".join(["attribute_exists(pk)"] * 180)),
        code=INVALID,
    ),
    Case(
        name="an item of more than 400 KB",
        operation="update_item",
        request=update("SET #x = :x", n_x="x", v_x={"S": "x" * (400 * 1024)}),
        code=INVALID,
    ),
)
