"""The way out: one request sent, read and, if nothing of it was delivered, sent again.

Every foreign error becomes one of ours here. Interrupts and deadlines cut the connection under way;
what the reader then sees is ambiguous, so our own flags decide what it was.

Owns: time and network: retries, timeouts, deadline, interrupts, proxies.
Does not know: a provider's JSON, messages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from . import faults, logs, retry
from .adapters import MakeDecoder, Request, masked
from .connection import Connections, drain, read
from .decoding import BodyDecoder
from .errors import AgentError, InvalidResponseError, Timeout
from .events import RoundEvent
from .interrupt import Interrupt
from .options import AgentOptions, environment
from .presets import is_loopback
from .record import Record
from .retry import RetryConfig
from .translation import foreign, innermost, is_stale_connection, of_connecting, of_reading

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

T = TypeVar("T")


class Line:
    """The way out of one exchange, over the connections of its client.

    Call it with a request and a maker of decoders for the events of one round. ``deadline`` seconds
    after it was made nothing more goes through.
    """

    def __init__(
        self, options: AgentOptions, connections: Connections, interrupt: Interrupt, record: Record | None = None
    ) -> None:
        self._options = options
        self._record = record or Record()
        self._connections = connections
        self._interrupt = interrupt
        self._expires = float("inf") if options.deadline is None else time.monotonic() + options.deadline
        self._has_expired = False
        self._is_open = False
        self._decoder: BodyDecoder | None = None
        self._url = urlunsplit((*urlsplit(options.base_url)[:3], "", ""))  # a query may hold a key

    def __call__(self, request: Request, make_decoder: MakeDecoder) -> Iterator[RoundEvent]:
        """The events of one round. Ends early, without an error, when interrupted."""
        failures = 0
        while not self._interrupt.is_set():
            self._decoder = None
            try:
                with self._cut_when_over():
                    yield from self._attempt(request, make_decoder)
                return
            except AgentError as error:
                failures += 1
                was_delivered = self._decoder is not None and self._decoder.delivered
                wait = None if was_delivered else retry.pause(self._options.retry, error, failures)
                if wait is None or time.monotonic() + wait >= self._expires:
                    self._scrub(error)
                    raise
                self._scrub(error)
                logs.another_attempt(error, wait)
            self._interrupt.sleep(wait)

    def document(self, request: Request) -> bytes:
        """The whole body of the response to a request that asks for no turn; sent once, empty when interrupted."""
        try:
            with self._cut_when_over():
                response = self._open(request)
                return b"" if response is None else self._whole_body(response)
        except AgentError as error:
            self._scrub(error)
            raise

    def _whole_body(self, response: Response) -> bytes:
        limit = self._options.limits.document_bytes
        body = bytearray()
        try:
            while chunk := read(response):
                body += chunk
                if len(body) > limit:
                    raise InvalidResponseError(f"{self._url} sent more than {limit} bytes")
        except foreign() as exc:
            if self._interrupt.is_set():
                return b""
            if self._is_late():
                raise self._lateness() from exc
            raise of_reading(exc, self._url, read_timeout=self._options.read_timeout) from exc
        finally:
            response.close()
        return bytes(body)

    def _attempt(self, request: Request, make_decoder: MakeDecoder) -> Iterator[RoundEvent]:
        response = self._open(request)
        if response is None:
            return
        decoder = self._decoder = make_decoder(response.status_code, response.headers)
        try:
            yield decoder.start()
            while not decoder.done:
                yield from self._step(response, decoder)
                if self._interrupt.is_set() and not decoder.done:
                    if decoder.has_ended:
                        yield from decoder.end()
                    return
            if decoder.failure is not None:
                raise decoder.failure
        finally:
            _leave(response, can_reuse=decoder.done and decoder.failure is None)

    def _step(self, response: Response, decoder: BodyDecoder) -> list[RoundEvent]:
        """The events of the next bytes. Nothing that arrives with an interrupt is told."""
        failure: AgentError | None = None
        chunk = b""
        try:
            chunk = read(response)
        except foreign() as exc:
            failure = of_reading(exc, self._url, read_timeout=self._options.read_timeout)
            failure.__cause__ = exc
        if self._interrupt.is_set():
            return []
        if self._is_late():
            failure = self._lateness()
        return decoder.feed(chunk) if chunk and failure is None else decoder.end(failure)

    def _open(self, request: Request) -> Response | None:
        """The response to the request; None if interrupted."""
        response = self._sent(self._prepared(request))
        if response is None or 200 <= response.status_code < 300:
            return response
        try:
            body = self._error_body(response)
        finally:
            _leave(response, can_reuse=True)
        if self._interrupt.is_set():
            return None
        mask = partial(masked, self._options)
        raise faults.from_status(response.status_code, response.headers, body, url=self._url, mask=mask)

    def _prepared(self, request: Request) -> PreparedRequest:
        try:
            return self._connections.prepared(request.method, request.url, request.headers, request.body)
        except foreign() as exc:  # a host that is none
            raise self._unsent(exc) from innermost(exc)

    def _sent(self, prepared: PreparedRequest, *, may_be_stale: bool = True) -> Response | None:
        options = self._options
        if self._is_late():
            raise self._lateness()
        self._record.sent(prepared, options)
        logs.request(self._record)
        try:
            response = self._connections.send(
                prepared,
                timeout=(options.connect_timeout, options.read_timeout),
                proxies=_proxies(options, prepared.url or ""),
                verify=_verification(options),
                cert=options.cert,
            )
        except foreign() as exc:
            if self._interrupt.is_set():
                return None
            if self._is_late():
                raise self._lateness() from innermost(exc)
            if may_be_stale and self._connections.was_reused and is_stale_connection(exc):
                return self._sent(prepared, may_be_stale=False)
            raise self._unsent(exc) from innermost(exc)
        self._record.heard(response.status_code, response.headers)
        logs.response(self._record)
        if self._interrupt.is_set():
            response.close()
            return None
        return response

    def _unsent(self, exc: Exception) -> AgentError:
        options = self._options
        return of_connecting(exc, self._url, connect_timeout=options.connect_timeout, read_timeout=options.read_timeout)

    def _error_body(self, response: Response) -> bytes:
        body = b""
        try:
            while len(body) < self._options.limits.error_body_bytes and (chunk := read(response)):
                body += chunk
        except foreign():
            pass  # what came of it will do: the status says what matters
        return body

    @contextmanager
    def _cut_when_over(self) -> Iterator[None]:
        """Within this context an interrupt or the deadline cuts the connection under way."""
        self._connections.is_cut = lambda: self._interrupt.is_set() or self._is_late()
        timer = None
        self._is_open = True
        try:
            if self._options.deadline is not None:
                timer = threading.Timer(max(0.0, self._expires - time.monotonic()), self._expire)
                timer.daemon = True
                timer.start()
            with self._interrupt.waking(self._connections.cut):
                yield
        finally:
            self._is_open = False  # first: a timer that Ctrl-C keeps from being cancelled must not cut a later request
            if timer is not None:
                timer.cancel()
                if timer is not threading.current_thread():  # which may happen to collect a generator
                    timer.join()  # were it cutting now, it would cut the next request

    def _expire(self) -> None:
        if self._is_open:
            self._has_expired = True
            self._connections.cut()

    def _is_late(self) -> bool:
        return self._has_expired or time.monotonic() >= self._expires

    def _lateness(self) -> Timeout:
        return Timeout(f"the deadline of {self._options.deadline:g} s has passed")

    def _scrub(self, error: AgentError) -> None:
        """What is quoted whole; what is cut is masked before (``faults.Mask``). A key must not get into a log so."""
        error.args = tuple(masked(self._options, str(arg)) for arg in error.args)
        error.body = error.body and masked(self._options, error.body)
        error.request_id = error.request_id and masked(self._options, error.request_id)


def _leave(response: Response, *, can_reuse: bool) -> None:
    """Let go of a response: its connection goes back to the pool if the body is at its end, else is closed."""
    try:
        if can_reuse:
            drain(response)
    except foreign():
        pass
    finally:
        response.close()


def _proxies(options: AgentOptions, url: str) -> dict[str, str]:
    """The proxies that the user set, else the environment's; this machine is reached directly."""
    from requests.utils import get_environ_proxies

    if isinstance(options.proxies, str):
        return {"http": options.proxies, "https": options.proxies}
    if options.proxies is not None:
        return dict(options.proxies)
    return {} if is_loopback(url) else get_environ_proxies(url)


def _verification(options: AgentOptions) -> bool | str:
    if options.verify is not None:
        return options.verify
    return environment("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE") or True


def retry_with_backoff(
    operation: Callable[[], T],
    config: RetryConfig | None = None,
    *,
    is_retryable: Callable[[BaseException], bool] = lambda error: True,
    sleep: Callable[[float], Any] = time.sleep,
) -> T:
    """What the operation returns, tried again after errors as often as ``config`` says."""
    config = config or RetryConfig()
    failures = 0
    while True:
        try:
            return operation()
        except Exception as error:
            failures += 1
            if failures >= config.max_attempts or not is_retryable(error):
                raise
        sleep(config.delay(failures))


def retry_with_backoff_conditional(
    operation: Callable[[], T], config: RetryConfig | None = None, *, sleep: Callable[[float], Any] = time.sleep
) -> T:
    """The same, but an error that would only come again is raised at once."""
    return retry_with_backoff(operation, config, is_retryable=retry.is_retryable_error, sleep=sleep)
