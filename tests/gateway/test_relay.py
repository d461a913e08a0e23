"""The relay between a provider's reader and a caller: what a slow or a gone caller does to the reading, namely nothing."""

import asyncio

from spendgate.relay import PIECES_MAX, Relay


async def _taken(relay: Relay) -> list[bytes]:
    return [piece async for piece in relay.pieces()]


def test_pieces_arrive_in_order_and_end_when_the_writer_closes() -> None:
    async def passed() -> list[bytes]:
        relay = Relay()
        for piece in (b"a", b"", b"b"):
            await relay.send(piece)
        await relay.close()
        return await _taken(relay)

    assert asyncio.run(passed()) == [b"a", b"b"]


def test_a_reader_that_left_is_written_to_without_waiting() -> None:
    async def passed() -> None:
        relay = Relay()
        relay.leave()
        for _ in range(2 * PIECES_MAX):
            await relay.send(b"x")
        await relay.close()

    asyncio.run(asyncio.wait_for(passed(), 5))


def test_a_reader_that_leaves_frees_a_writer_who_waits_for_room() -> None:
    async def passed() -> None:
        relay = Relay()

        async def write() -> None:
            for _ in range(3 * PIECES_MAX):
                await relay.send(b"x")
            await relay.close()

        writing = asyncio.create_task(write())
        await asyncio.sleep(0.01)
        assert not writing.done()
        relay.leave()
        await writing

    asyncio.run(asyncio.wait_for(passed(), 5))


def test_a_reader_that_stalls_is_taken_for_gone_and_finds_the_end_when_it_wakes() -> None:
    async def passed() -> list[bytes]:
        relay = Relay(stalled_seconds=0.01)
        for _ in range(3 * PIECES_MAX):
            await relay.send(b"x")
        await relay.close()
        return await _taken(relay)

    assert asyncio.run(asyncio.wait_for(passed(), 5)) == []
