"""Foreign errors of the network as errors of ours, in words that name the server and the next step.

Owns: what an exception of requests, urllib3, http.client, ssl or socket means.
Does not know: who asked, what is done about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from .errors import AgentError, ConfigError, InvalidResponseError, StreamInterruptedError, Timeout, TransportError
from .presets import is_loopback, server_title


@cache
def foreign() -> tuple[type[Exception], ...]:
    """The exceptions that a network call may raise."""
    from http.client import HTTPException

    import requests
    import urllib3

    return (requests.RequestException, urllib3.exceptions.HTTPError, HTTPException, OSError)


def of_connecting(exc: Exception, url: str, *, connect_timeout: float, read_timeout: float) -> AgentError:
    """The error of a request that got no response. ``url`` is the server's, fit to be shown."""
    import socket
    import ssl

    import requests
    import urllib3.exceptions as u

    chain = tuple(_causes(exc))

    def find(*kinds: type[BaseException]) -> BaseException | None:
        return next((cause for cause in chain if isinstance(cause, kinds)), None)

    wrong = (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.InvalidHeader)
    if find(*wrong, requests.exceptions.InvalidProxyURL, u.LocationParseError) or isinstance(exc, ValueError):
        return ConfigError(f"the request to {url} cannot be made: {exc}")
    if isinstance(exc, OSError) and not isinstance(exc, requests.RequestException):
        return ConfigError(f"the request to {url} cannot be made: {exc}")  # a CA bundle or certificate not found
    if failure := find(requests.exceptions.ProxyError, u.ProxyError):
        return TransportError(f"the proxy on the way to {url} failed: {_reason(failure)}", retryable=True)
    if find(socket.gaierror, u.NameResolutionError):
        return TransportError(f"the name of {url} cannot be resolved: check base_url and the network")
    if find(ConnectionRefusedError):
        return _refused(url)
    # Not urllib3's ConnectTimeoutError, which is the base of all its errors of connecting.
    if find(requests.ConnectTimeout) or any("handshake operation timed out" in str(cause) for cause in chain):
        return Timeout(f"no connection to {url} within {connect_timeout:g} s", retryable=True)
    if find(u.ReadTimeoutError, TimeoutError):
        return Timeout(f"{url} sent no answer for {read_timeout:g} s", retryable=True)
    if failure := find(ssl.SSLError, u.SSLError):
        return TransportError(f"TLS with {url} failed: {_reason(failure)}")
    return TransportError(f"the connection to {url} failed: {_reason(chain[-1])}", retryable=True)


def of_reading(exc: Exception, url: str, *, read_timeout: float) -> AgentError:
    """The error of a body that broke off."""
    import urllib3.exceptions as u

    if any(isinstance(cause, (u.ReadTimeoutError, TimeoutError)) for cause in _causes(exc)):
        return Timeout(f"{url} sent nothing more for {read_timeout:g} s", retryable=True)
    if isinstance(exc, u.DecodeError):
        return InvalidResponseError(f"the body from {url} cannot be decompressed: {exc}")
    return StreamInterruptedError(f"the answer from {url} broke off: {_reason(exc)}")


def is_stale_connection(exc: BaseException | None) -> bool:
    """Whether the server had closed the connection before it sent a single byte."""
    from http.client import RemoteDisconnected

    dropped = (RemoteDisconnected, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
    return exc is not None and any(isinstance(cause, dropped) for cause in _causes(exc))


def _refused(url: str) -> TransportError:
    if not is_loopback(url):
        return TransportError(f"no server at {url}: the connection was refused", retryable=True)
    title = server_title(url)
    hint = f"is {title} running?" if title else "is it running, and is the port right?"
    return TransportError(f"no server at {url}: {hint}")


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """The exception and what it wraps, outermost first: urllib3 wraps in arguments and in ``reason``."""
    seen: set[int] = set()
    waiting = [exc]
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        inner = [getattr(cause, "reason", None), *cause.args, cause.__cause__, cause.__context__]
        waiting += [item for item in inner if isinstance(item, BaseException)]


def innermost(exc: BaseException) -> BaseException:
    """What it began with: the outer exceptions repeat it with addresses of objects and the whole URL."""
    return list(_causes(exc))[-1]


def _reason(exc: BaseException) -> str:
    from http.client import IncompleteRead

    inner = innermost(exc)
    if isinstance(inner, IncompleteRead):
        return "the server closed the connection in the midst of it"
    return f"{type(inner).__name__}: {inner}" if str(inner) else type(inner).__name__
