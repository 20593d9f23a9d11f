"""Who may come in: nobody is asked, or the console's own users, or keys of the clusters."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from gantrymq.access.credentials import Credentials
from gantrymq.base.background import Background
from gantrymq.base.errors import GantryError
from gantrymq.console.access.attempts import LoginAttempts
from gantrymq.console.access.cluster_login import log_in
from gantrymq.console.access.passwords import hashed, is_right
from gantrymq.console.access.sessions import LoginSessions, Session
from gantrymq.console.access.user import LOCAL_USER, ConsoleUser, Role
from gantrymq.console.access.users_file import UsersFile
from gantrymq.console.clusters import Clusters
from gantrymq.console.errors import LoginNeeded, TooManyAttempts
from gantrymq.console.settings import ConsoleSettings, LoginKind

WRONG: Final = "name or password is wrong"


class Login:
    """Opens sessions; `session_of` finds them again."""

    def __init__(self, settings: ConsoleSettings, own: Clusters) -> None:
        self.kind = settings.login
        self._settings, self._own = settings, own
        self._file = UsersFile(settings.users_path)
        self._attempts = LoginAttempts()
        self._background = Background("the sessions of the console")
        self._sessions = LoginSessions(own, self._background)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One guess at a time: each takes memory and processor time. A cluster has its own turns,
        so that one that is slow holds up nobody else."""
        self._nobody = ""

    async def close(self) -> None:
        await self._sessions.close()
        await self._background.finish()

    def session_of(self, token: str | None) -> Session | None:
        """The session of a token; that of the local user where nobody logs in."""
        now = asyncio.get_running_loop().time()
        if self.kind is LoginKind.NONE:
            return Session(LOCAL_USER, self._own, _always, now, now)
        return self._sessions.find(token, now) if token else None

    def end(self, token: str) -> None:
        """End the session of a token."""
        self._sessions.remove(token)

    async def open(
        self,
        token: str,
        name: str,
        password: str,
        address: str,
        cluster: str | None = None,
        before: str | None = None,
    ) -> Session:
        """Log in under a token; LoginNeeded or TooManyAttempts if it may not be.

        With keys of clusters a session has one for each cluster: the new session has those of the
        session of before, too, which ends.
        """
        loop, turn = asyncio.get_running_loop(), ""
        if self.kind is LoginKind.CLUSTER:
            turn = self._own.address(cluster or self._own.names[0]).name
        async with self._turns[turn]:
            wait = self._attempts.seconds_to_wait(name, address, loop.time())
            if wait > 0:
                raise TooManyAttempts(f"too many wrong passwords; try again in {wait:.0f} s")
            try:
                if self.kind is LoginKind.USERS:
                    user, clusters, is_valid = await self._own_user(name, password)
                else:
                    user, clusters, is_valid = await self._key(before, name, password, cluster)
            except LoginNeeded:
                self._attempts.failed(name, address, loop.time())
                raise
        self._attempts.succeeded(name)
        session = Session(user, clusters, is_valid, loop.time(), loop.time())
        self._sessions.add(token, session)
        if before is not None:
            self._sessions.remove(before)
        return session

    async def _own_user(
        self, name: str, password: str
    ) -> tuple[ConsoleUser, Clusters, Callable[[], bool]]:
        known = self._file.users.get(name)
        self._nobody = self._nobody or await asyncio.to_thread(hashed, "nobody's")
        # A name that nobody has takes as long as one that somebody has.
        kept = self._nobody if known is None else known.password
        right = await asyncio.to_thread(is_right, password, kept)
        if known is None or not right:
            raise LoginNeeded(WRONG)

        def is_valid() -> bool:
            return self._file.users.get(name) == known

        return ConsoleUser(name, known.role), self._own, is_valid

    async def _key(
        self, earlier: str | None, access_key: str, secret_key: str, cluster: str | None
    ) -> tuple[ConsoleUser, Clusters, Callable[[], bool]]:
        name = cluster or self._own.names[0]
        address = self._own.address(name)
        try:
            pair = Credentials(access_key, secret_key)
        except GantryError:
            raise LoginNeeded("give an access key and its secret key") from None
        await log_in(address, pair)
        before = self.session_of(earlier)
        keys = before.clusters.keys if before is not None else {}
        clusters = Clusters(map(self._own.address, self._own.names), keys | {name: pair})
        # Who manages another cluster may make a key of any name there.
        is_admin = access_key in self._settings.admins and name == self._own.names[0]
        user = ConsoleUser(access_key, Role.ADMIN if is_admin else Role.CLUSTER_USER)
        if before is not None and before.user.role is Role.ADMIN:
            user = before.user
        return user, clusters, _always


def _always() -> bool:
    return True
