"""The machine of one classic group. Time is a parameter; nothing waits, dials or writes here.

docs/internals/groups.md specifies it.

    state       what is so                     left when
    EMPTY       no member                      one is let in → PREPARING
    PREPARING   members join (again)           all have, or time is up → COMPLETING; or no member
                                               is left → EMPTY
    COMPLETING  a generation without its       the leader brings it → STABLE; a member comes, goes
                assignment                     or changes → PREPARING
    STABLE      members have assignments       a member comes, goes or changes, or the leader joins
                                               again → PREPARING

    event          EMPTY           PREPARING            COMPLETING            STABLE
    join, new      → PREPARING     waits                → PREPARING           → PREPARING
    join, again    unknown member  waits                answered if the same  answered if the same
    static, back   → PREPARING     waits                → PREPARING           keeps its assignment
    sync           unknown member  rebalance …          waits; leader: STABLE its assignment
    heartbeat      unknown member  rebalance …          ok                    ok
    commit         ok from outside ok for members       rebalance …           ok for members
    leave, death   unknown member  maybe → COMPLETING   → PREPARING           → PREPARING
    unsaved                                                                   → PREPARING

Invariants
- A generation has one assignment, and generations only grow.
- Every waiter is answered: by the next generation, by its assignment, or by an error.
- `Arm` never names a time later than the earliest deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rockgate.gateway.kafka.groups.classic import events
from rockgate.gateway.kafka.groups.classic.events import GroupState, Join, Joined, Outbox, Sync
from rockgate.gateway.kafka.groups.classic.group_record import SavedGroup
from rockgate.gateway.kafka.groups.classic.join_window import NEVER_MS, JoinWindow
from rockgate.gateway.kafka.groups.classic.members import Member, Members
from rockgate.gateway.kafka.groups.config import GroupsConfig
from rockgate.protocol.kafka.errors import ErrorCode

NEW_MEMBER_MS: Final = 300_000
"""How long a member waits for its first generation: it cannot send heartbeats yet."""
_OK: Final = ErrorCode.NONE


class ClassicGroup:
    """One group."""

    def __init__(self, config: GroupsConfig, new_id: Callable[[str], str]) -> None:
        self._config = config
        self._new_id = new_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol_name: str | None = None
        self.members = Members()
        self.pending: dict[str, int] = {}
        """Member ids assigned to clients that have not joined with them yet, and when they expire.
        """
        self._unsynced: set[str] = set()
        self._join_window = JoinWindow()
        self._sync_until_ms = NEVER_MS
        self._now_ms = 0
        self._out = Outbox()

    def restore(self, saved: SavedGroup, now_ms: int, *, is_changed: bool) -> list[events.Effect]:
        """Restore the saved group, before any other event; every session starts over."""
        self._now_ms = now_ms
        effects = self._out.begin(is_woken=True)
        self.generation, self.protocol_type = saved.generation, saved.protocol_type
        for each in saved.members:
            member = each.member()
            self.members.add(member)
            self._touch(member)
        if self.members:
            self.state, self.protocol_name = GroupState.STABLE, saved.protocol_name
            self.members.leader = saved.leader
            if is_changed:
                self._changed()
        return effects

    @property
    def is_idle(self) -> bool:
        """Whether there is no state beyond what is saved."""
        return self.state is GroupState.EMPTY and not self.pending

    def handle(self, event: events.Event, now_ms: int) -> list[events.Effect]:
        """Handle an event; returns its effects, in order."""
        self._now_ms = now_ms
        effects = self._out.begin(is_woken=isinstance(event, events.Wake))
        if isinstance(event, events.MemberHeartbeat):
            self._out.reply(event.waiter, self._beat(event))
        elif isinstance(event, events.Commit):
            self._out.reply(event.waiter, self._check_commit(event))
        elif isinstance(event, Join):
            self._join(event)
        elif isinstance(event, Sync):
            self._sync(event)
        elif isinstance(event, events.Leave):
            self._leave(event)
        elif isinstance(event, events.Wake):
            self._wake()
        elif isinstance(event, events.Unsaved):
            self.members.assign(event.former)
            self._changed()
        else:
            for member in self.members:
                self._end_waits(member, event.code)
        return effects

    # Joining

    def _join(self, join: Join) -> None:
        member_id = join.member_id
        if code := self._check_join(join):
            self._out.reply(join.waiter, Joined(code, member_id))
        elif not member_id:
            self._join_first(join)
        elif member_id in self.pending:
            self._admit(join, member_id)
        else:
            self._rejoin(join, self.members.get(member_id))

    def _check_join(self, join: Join) -> ErrorCode:
        if not self.members.support(join, self.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        is_full = not join.member_id and len(self.pending) >= self._config.members_max
        is_preparing = self.state is GroupState.PREPARING
        if is_full or not self.members.has_room(join, is_preparing, self._config.members_max):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not join.member_id:
            return _OK
        if join.member_id in self.pending:
            # A static member never has to rejoin with an assigned id.
            return _OK if join.instance_id is None else ErrorCode.UNKNOWN_MEMBER_ID
        return self.members.check(join.member_id, join.instance_id)

    def _join_first(self, join: Join) -> None:
        """A client without a member id joins."""
        member_id = self._new_id(join.instance_id or join.client_id)
        if join.instance_id is not None:
            old_id = self.members.static_id(join.instance_id)
            if old_id is None:
                self._admit(join, member_id)
            else:
                self._replace(join, self.members.get(old_id), member_id)
        elif join.needs_id:
            self.pending[member_id] = self._now_ms + join.session_ms
            self._out.arm(self.pending[member_id])
            self._out.reply(join.waiter, Joined(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._admit(join, member_id)

    def _admit(self, join: Join, member_id: str) -> None:
        """Add a new member."""
        self.pending.pop(member_id, None)
        member = Member.joining(member_id, join)
        member.deadline_ms = self._now_ms + NEW_MEMBER_MS
        self._out.arm(member.deadline_ms)
        if not self.members:
            self.protocol_type = join.protocol_type
        self.members.add(member)
        self.members.begin_join(member, join.waiter)
        self._join_window.note_newcomer()
        self._changed()

    def _rejoin(self, join: Join, member: Member) -> None:
        """A member rejoins."""
        is_same = member.protocols == join.protocols
        # A leader that rejoins has seen a change that the assignment should follow.
        is_leading = self.state is GroupState.STABLE and self.members.leader == member.id
        if self.state is GroupState.PREPARING or is_leading or not is_same:
            self.members.update(member, join)
            self._await_join(member, join.waiter)
            self._changed()
            return
        # The response to its first join was lost, or it only checks.
        self._touch(member)
        self._out.reply(join.waiter, self._joined(member, self.state is GroupState.COMPLETING))

    def _replace(self, join: Join, member: Member, member_id: str) -> None:
        """A static member has returned and takes over its place under a new id."""
        old_id, old_leader = member.id, self.members.leader
        self._end_waits(member, ErrorCode.FENCED_INSTANCE_ID)
        self.members.rename(member, member_id)
        self.members.update(member, join)
        if old_id in self._unsynced:
            self._unsynced.remove(old_id)
            self._unsynced.add(member_id)
        if self.state is GroupState.STABLE and self.members.vote() == self.protocol_name:
            self._touch(member)
            self._out.save()
            is_skipping = join.can_skip and self.members.leader == member_id
            joined = self._joined(member, is_skipping)._replace(is_skipping=is_skipping)
            if not join.can_skip:
                # As the leader it would compute a new assignment.
                joined = joined._replace(leader=old_leader or "")
            self._out.reply(join.waiter, joined)
            return
        self._await_join(member, join.waiter)
        self._changed()

    def _await_join(self, member: Member, waiter: events.Waiter) -> None:
        if (before := self.members.begin_join(member, waiter)) is not None:
            self._out.reply(before, Joined(ErrorCode.REBALANCE_IN_PROGRESS, member.id))

    def _changed(self) -> None:
        """The membership has changed: begin a new generation, or perhaps complete one."""
        if self.state is not GroupState.PREPARING:
            self._prepare()
        elif not self._join_window.is_first:
            self._complete_if_all_joined()

    def _prepare(self) -> None:
        was_empty = self.state is GroupState.EMPTY
        self.state = GroupState.PREPARING
        self._end_syncs(ErrorCode.REBALANCE_IN_PROGRESS)
        self._unsynced.clear()
        self._sync_until_ms = NEVER_MS
        join_window, rebalance_ms = self._join_window, self.members.rebalance_ms
        if was_empty:
            delay_ms = self._config.initial_delay_ms
            join_window.begin_first(self._now_ms, delay_ms, rebalance_ms)
            if not delay_ms:
                self._complete()
        else:
            join_window.begin(self._now_ms, rebalance_ms)
            self._complete_if_all_joined()
        self._out.arm(join_window.until_ms)

    def _complete_if_all_joined(self) -> None:
        if not self.pending and self.members.joining_count == len(self.members):
            self._complete()

    def _complete(self) -> None:
        """Begin a generation of the joined members; static ones may be absent for a while."""
        self._join_window.end()
        for member in list(self.members):
            if member.join is None and member.instance_id is None:
                self.members.remove(member)
        if self.members and not self.members.elect():
            # All are static and none has returned: one of them returns, or their sessions expire.
            self._join_window.begin(self._now_ms, self.members.rebalance_ms)
            self._out.arm(self._join_window.until_ms)
            return
        self.generation += 1
        if not self.members:
            self.state = GroupState.EMPTY
            self.protocol_name = None
            self._out.save()
            return
        self.state = GroupState.COMPLETING
        self.protocol_name = self.members.vote()
        self._sync_until_ms = self._now_ms + self.members.rebalance_ms
        self._out.arm(self._sync_until_ms)
        for member in self.members:
            member.is_new = False
            self._touch(member)
            self._unsynced.add(member.id)
            waiter = self.members.end_join(member)
            if waiter is not None:
                self._out.reply(waiter, self._joined(member, True))

    def _joined(self, member: Member, lists_members: bool) -> Joined:
        """The current generation, for a member; the leader may get the list of members."""
        leader, name = self.members.leader or "", self.protocol_name
        listed: list[events.Listed] = []
        if lists_members and member.id == leader:
            listed = [events.Listed(m.id, m.instance_id, m.metadata(name)) for m in self.members]
        kind = self.protocol_type
        return Joined(_OK, member.id, self.generation, kind, name, leader, False, listed)

    # Syncing

    def _sync(self, sync: Sync) -> None:
        if code := self._check_sync(sync):
            self._out.reply(sync.waiter, events.Synced(code))
            return
        member = self.members.get(sync.member_id)
        self._unsynced.discard(member.id)
        if self.state is GroupState.STABLE:
            self._touch(member)
            self._out.reply(sync.waiter, self._synced(member))
            return
        if member.sync is not None:
            self._out.reply(member.sync, events.Synced(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync = sync.waiter
        if member.id == self.members.leader:
            self.state = GroupState.STABLE
            self._out.save(self.members.assign(sync.assignments))
            self._end_syncs(_OK)

    def _check_sync(self, sync: Sync) -> ErrorCode:
        code = self._check(sync)
        is_type = sync.protocol_type in (None, self.protocol_type)
        if not code and not (is_type and sync.protocol_name in (None, self.protocol_name)):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return code or self._check_gathered()

    def _synced(self, member: Member) -> events.Synced:
        return events.Synced(_OK, self.protocol_type, self.protocol_name, member.assignment)

    def _end_syncs(self, code: ErrorCode) -> None:
        for member in self.members:
            waiter, member.sync = member.sync, None
            if waiter is not None:
                self._touch(member)
                self._out.reply(waiter, events.Synced(code) if code else self._synced(member))

    # Heartbeats, commits, leaving, expiry

    def _beat(self, beat: events.MemberHeartbeat) -> ErrorCode:
        code = self._check(beat)
        if not code:
            self._touch(self.members.get(beat.member_id))
        return code or self._check_gathered()

    def _check_commit(self, commit: events.Commit) -> ErrorCode:
        if commit.generation < 0 and self.state is GroupState.EMPTY:
            # A client that is no member, or a consumer that assigns its partitions itself.
            return _OK
        if commit.generation < 0 and not commit.member_id and commit.instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        code = self._check(commit)
        if not code and self.state is GroupState.COMPLETING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        if not code:
            self._touch(self.members.get(commit.member_id))
        return code

    def _leave(self, leave: events.Leave) -> None:
        count, pending_count = len(self.members), len(self.pending)
        codes = [self._leave_one(leaver) for leaver in leave.leavers]
        is_gathered = len(self.pending) < pending_count and self.state is GroupState.PREPARING
        if len(self.members) < count or is_gathered:
            self._changed()
        self._out.reply(leave.waiter, codes)

    def _leave_one(self, leaver: events.Leaver) -> ErrorCode:
        member_id, instance_id = leaver
        if not member_id and instance_id is not None:
            member_id = self.members.static_id(instance_id) or ""
        if instance_id is None and self.pending.pop(member_id, None) is not None:
            return _OK
        code = self.members.check(member_id, instance_id)
        if not code:
            self._drop(self.members.get(member_id))
        return code

    def _drop(self, member: Member) -> None:
        self._end_waits(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._unsynced.discard(member.id)
        self.members.remove(member)

    def _wake(self) -> None:
        now_ms = self._now_ms
        join_window = self._join_window
        late = [member_id for member_id, at_ms in self.pending.items() if at_ms <= now_ms]
        for member_id in late:
            del self.pending[member_id]
        silent: set[str] = set()
        if self._sync_until_ms <= now_ms:
            self._sync_until_ms = NEVER_MS
            silent = set(self._unsynced)
        members = self.members
        dead = [m for m in members if m.id in silent or (m.is_watched and m.deadline_ms <= now_ms)]
        for member in dead:
            self._drop(member)
        if dead or (late and self.state is GroupState.PREPARING):
            self._changed()
        if join_window.until_ms <= now_ms and not join_window.is_extended(now_ms):
            self._complete()
        self._out.arm(min((m.deadline_ms for m in members if m.is_watched), default=NEVER_MS))
        self._out.arm(min(self.pending.values(), default=NEVER_MS))
        self._out.arm(min(join_window.until_ms, self._sync_until_ms))

    def _check(self, event: Sync | events.MemberHeartbeat | events.Commit) -> ErrorCode:
        code = self.members.check(event.member_id, event.instance_id)
        is_old = not code and event.generation != self.generation
        return ErrorCode.ILLEGAL_GENERATION if is_old else code

    def _check_gathered(self) -> ErrorCode:
        is_preparing = self.state is GroupState.PREPARING
        return ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else _OK

    def _end_waits(self, member: Member, code: ErrorCode) -> None:
        waiter = self.members.end_join(member)
        if waiter is not None:
            self._out.reply(waiter, Joined(code, member.id))
        waiter, member.sync = member.sync, None
        if waiter is not None:
            self._out.reply(waiter, events.Synced(code))

    def _touch(self, member: Member) -> None:
        """Extend the session of a member."""
        member.deadline_ms = self._now_ms + member.session_ms
        self._out.arm(member.deadline_ms)
