"""Virtual time: one event loop for every task and every blocking call of a history, in an order that its seed decides.

Nothing here reads a clock. What waits, waits on one heap; the earliest goes on, and whoever is earliest was drawn from a
seed. A blocking call (``offload``) has a thread of its own and yet only one thread runs at any time, so that a history can
be interrupted wherever production code waits, and comes out the same each time.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final, TypeVar

from spendgate.errors import Refused

T = TypeVar("T")

SECOND: Final = 1_000_000


class Killed(BaseException):
    """The process that this ran in has died; as a BaseException no production code takes it for an answer."""


class Loop(asyncio.AbstractEventLoop):
    """An event loop whose time passes when nothing is left to do at this instant."""

    def __init__(self) -> None:
        self.micros = 0
        self.troubles: list[BaseException] = []
        self._heap: list[tuple[int, int, asyncio.Handle | _Fiber]] = []
        self._number = 0
        self._ready: deque[asyncio.Handle] = deque()
        self._running = False
        self._back = threading.Lock()
        self._back.acquire()
        self._idle: list[_Worker] = []
        self._current: _Fiber | None = None

    # -- running

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Go on until nothing is left to be done, or until this is true."""
        asyncio._set_running_loop(self)  # what every implementation of an event loop calls
        self._running = True
        try:
            while True:
                while self._ready:
                    handle = self._ready.popleft()
                    if not handle.cancelled():
                        handle._run()
                if not self._heap or until():
                    return
                at, _, waiting = heapq.heappop(self._heap)
                if isinstance(waiting, _Fiber):
                    self.micros = max(self.micros, at)
                    self._resume(waiting)
                elif not waiting.cancelled():
                    self.micros = max(self.micros, at)
                    self._ready.append(waiting)
        finally:
            self._running = False
            asyncio._set_running_loop(None)

    def after(self, micros: int, callback: Callable[..., object], *args: Any) -> None:
        """Call back when so much time has passed."""
        self._push(self.micros + micros, asyncio.Handle(callback, args, self))

    async def pause(self, micros: int) -> None:
        """Let so much time pass for the task that waits."""
        future = self.create_future()
        self.after(micros, _wake, future)
        await future

    # -- blocking calls

    def offload(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Start a blocking call at once; it runs until it waits."""
        future: asyncio.Future[T] = self.create_future()
        fiber = _Fiber(call, future, copy_context())
        self._resume(fiber)
        return future

    def wait(self, micros: int) -> None:
        """Let time pass for the blocking call that runs; what no loop has started waits for nothing."""
        fiber = self._current
        if fiber is None:
            return
        self._push(self.micros + micros, fiber)
        self._back.release()
        assert fiber.worker is not None
        fiber.worker.go.acquire()

    def close(self) -> None:
        """End the threads that no call uses."""
        while self._idle:
            self._idle.pop().end()

    def _resume(self, fiber: _Fiber) -> None:
        before, self._current = self._current, fiber
        if fiber.worker is None:
            fiber.worker = self._idle.pop() if self._idle else _Worker(self._back)
            fiber.worker.fiber = fiber
        worker = fiber.worker
        worker.go.release()
        self._back.acquire()
        self._current = before
        if fiber.done:
            fiber.worker = None
            self._idle.append(worker)
            if not fiber.future.done():
                if fiber.error is None:
                    fiber.future.set_result(fiber.result)
                else:
                    fiber.future.set_exception(fiber.error)

    def _push(self, at: int, waiting: asyncio.Handle | _Fiber) -> None:
        self._number += 1
        heapq.heappush(self._heap, (at, self._number, waiting))

    # -- what asyncio asks of a loop

    def time(self) -> float:
        return self.micros / SECOND

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._push(max(round(when * SECOND), self.micros), handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is skipped when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        # A caller who has gone does not hear that it was refused.
        if isinstance(error, BaseException) and not isinstance(error, Killed | Refused):
            self.troubles.append(error)


# Who acts: set by the world in each task and each blocking call that it starts, and inherited by what these start.
ACTOR: Final[ContextVar[Any]] = ContextVar("ACTOR")


class _Fiber:
    def __init__(self, call: Callable[[], Any], future: asyncio.Future[Any], context: Context) -> None:
        self._call = call
        self._context = context
        self.future = future
        self.worker: _Worker | None = None
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._context.run(self._call)
        except BaseException as error:  # noqa: BLE001 - whoever awaits it gets it
            self.error = error
        self.done = True


class _Worker:
    def __init__(self, back: threading.Lock) -> None:
        self.go = threading.Lock()
        self.go.acquire()
        self.fiber: _Fiber | None = None
        self._back = back
        threading.Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        self.fiber = None
        self.go.release()

    def _run(self) -> None:
        while True:
            self.go.acquire()
            if self.fiber is None:
                return
            self.fiber.run()
            self._back.release()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
