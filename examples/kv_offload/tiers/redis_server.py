"""The shared store: a redis-server of our own, or one that is there already."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from lifegraph import resource

from .child_process import ChildProcess


@resource
class RedisServer(ChildProcess):
    """A `redis-server` on a Unix socket that only this user can reach, which keeps up to `cap` bytes in memory.

    With a `url` it is somebody else's server: nothing is started, and stop leaves it as it is.
    """

    def __init__(self, cap: int, url: str | None = None, *, limit: float = 15.0) -> None:
        super().__init__(limit=limit)
        self._cap = cap
        self._url = url
        self._directory: Path | None = None

    def start(self) -> None:
        """Start it and wait until it answers. Raises RuntimeError where there is no redis-server, or it does not."""
        if self._url is not None:
            return
        if shutil.which("redis-server") is None:
            raise RuntimeError("redis-server is not installed (Debian: `apt-get install redis-server`)")
        self._directory = Path(tempfile.mkdtemp(prefix="kv_redis-"))
        self.spawn(
            f"{__package__}.redis_process", ["--socket", str(self.socket_path), "--cap", str(self._cap)], b"", {}
        )

    def stop(self) -> None:
        """Ask it to leave, wait, reap, and remove its socket."""
        super().stop()
        self._tidy()

    def kill(self) -> None:
        """SIGKILL to the server and its keeper, and reap."""
        super().kill()
        self._tidy()

    @property
    def socket_path(self) -> Path:
        """Where it listens, between start and stop."""
        if self._directory is None:
            raise RuntimeError("the redis-server is not running")
        return self._directory / "socket"

    def client(self) -> Any:
        """A client that waits as long as it takes, and never tries a second time behind the caller's back."""
        import redis  # noqa: PLC0415 - optional, and slow to import
        from redis.backoff import NoBackoff  # noqa: PLC0415 - the same
        from redis.retry import Retry  # noqa: PLC0415 - the same

        options: dict[str, Any] = {"retry": Retry(NoBackoff(), 0), "socket_timeout": None}
        if self._url is not None:
            return redis.Redis.from_url(self._url, **options)
        return redis.Redis(unix_socket_path=str(self.socket_path), **options)

    def _tidy(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None
