"""Commands for gdb: who waits for ranges in a program that stands still, and who holds them.

    (gdb) source scripts/gdb/spanlock.py
    (gdb) spanlock                  threads that sleep for a range, and the holders of those locks
    (gdb) spanlock-holders LOCK     the holders of a lock: a RangeLock, or a raw list, skip-list or slot lock

It reads the memory of the stopped program, or of a core file, and calls nothing in it. It needs the library's
debug information with types (a debug build, or `debug = 2` in the profile) on a 64-bit machine. Tasks that wait are on
no thread's stack: `spanlock::deadlock::dump_all()` lists them. Segment locks know no holders.
"""

import gdb

GONE, SHARED, MOVED, FLAGS = 1, 4, 8, 7
SLOT_HELD, SLOT_SHARED, SLOT_PART = 1, 2, 64
FIRST_CHUNK = 4
FIRST_OWNER = 1 << 31
SLEEP = "spanlock::range::wait::waiter::Waiter::sleep"


def who(number):
    if number < FIRST_OWNER:
        return f"thread {number}"
    return "somebody" if number == FIRST_OWNER else f"owner {number - FIRST_OWNER}"


def fields(value):
    """The value itself and all within it, structures first."""
    yield value
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        for field in value.type.strip_typedefs().fields():
            if field.name is not None:
                yield from fields(value[field])


def innermost(value):
    """The only number or pointer within wrappers."""
    for inner in fields(value):
        if inner.type.strip_typedefs().code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_PTR):
            return int(inner)
    raise gdb.GdbError(f"no number in {value.type}")


def named(value, name):
    """The first field of that name within the value."""
    for inner in fields(value):
        kind = inner.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_STRUCT:
            for field in kind.fields():
                if field.name == name:
                    return inner[field]
    raise gdb.GdbError(f"{value.type} has no {name}")


def within(value, prefix):
    for inner in fields(value):
        if str(inner.type.strip_typedefs().name or "").startswith(prefix):
            return inner
    return None


def span(value):
    value = named(value, "span") if "Span" not in str(value.type) else value
    return f"{int(value['start'])}..={int(value['last'])}"


def place(address):
    """The file and the line of the `Location` at that address."""
    if address == 0:
        return ""
    request = gdb.lookup_type("spanlock::range::list::node::NodeRequest")
    pointer = next(field.type for field in request.fields() if field.name == "at")
    try:
        location = gdb.Value(address).cast(pointer).dereference()
        text = next(inner for inner in fields(location) if has_text(inner))
        memory = gdb.selected_inferior().read_memory(int(text["data_ptr"]), int(text["length"]))
        return f", at {bytes(memory).decode()}:{int(location['line'])}"
    except (gdb.error, StopIteration, UnicodeDecodeError):
        return ""


def has_text(value):
    kind = value.type.strip_typedefs()
    return kind.code == gdb.TYPE_CODE_STRUCT and {"data_ptr", "length"} <= {f.name for f in kind.fields()}


def nodes(head):
    """The holders in a list, from its head."""
    kind = gdb.lookup_type("spanlock::range::list::node::Node").pointer()
    link = head
    fast = bool(link & GONE)
    while link & ~FLAGS:
        node = gdb.Value(link & ~FLAGS).cast(kind).dereference()
        link = innermost(node["link"])
        # The mark of the fast path in the head is that of a node which is gone elsewhere.
        gone = bool(link & GONE) and not fast
        fast = False
        if not gone and innermost(node["tentative"]) == 0:
            request = within(node["request"], "spanlock::range::list::node::NodeRequest")
            mode = "shared" if link & SHARED else "exclusive"
            at = place(innermost(request["at"]))
            yield f"{who(innermost(request['owner']))}: {span(request)} {mode}{at}"


def slots(board):
    """The holders in slots."""
    slot_type = gdb.lookup_type("spanlock::range::slots::slot::Slot").pointer()
    chunks = board["chunks"]
    left = innermost(board["len"])
    for at in range(chunks.type.range()[1] + 1):
        first, count = innermost(chunks[at]), min(left, FIRST_CHUNK << at)
        left -= count
        for number in range(count if first else 0):
            slot = (gdb.Value(first).cast(slot_type) + number).dereference()
            state = innermost(slot["state"])
            if state & SLOT_HELD and innermost(slot["seniority"]) >> 63:
                names = ("held_start", "held_last") if state & SLOT_PART else ("start", "last")
                start, last = (innermost(slot[name]) for name in names)
                mode = "shared" if state & SLOT_SHARED else "exclusive"
                line = place(innermost(slot["at"]))
                yield f"{who(innermost(slot['asked_by']))}: {start}..={last} {mode}{line}"


def holders(lock):
    lists = within(lock, "spanlock::range::list::List<")
    if lists is None:
        raise gdb.GdbError(f"{lock.type} is no list, skip-list or slot lock")
    head = innermost(lists["head"])
    if head & MOVED:
        kind = gdb.lookup_type("spanlock::range::slots::board::Board").pointer()
        board = gdb.Value(head & ~15).cast(kind).dereference()
        yield from nodes(innermost(board["residue"]))
        yield from slots(board)
        annex = innermost(board["annex"])
        if annex:
            kind = gdb.lookup_type(str(lists.type).replace("range::slots::Setup", "range::list::skip::levels::SkipIndex"))
            yield from nodes(innermost(gdb.Value(annex).cast(kind.pointer()).dereference()["head"]))
    else:
        yield from nodes(head)


def print_holders(lock):
    listed = list(holders(lock))
    print(f"  held by {len(listed)}")
    for holder in listed:
        print(f"    {holder}")


class Holders(gdb.Command):
    """The holders of a lock: spanlock-holders LOCK"""

    def __init__(self):
        super().__init__("spanlock-holders", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, _):
        lock = gdb.parse_and_eval(argument)
        if lock.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
            lock = lock.dereference()
        print_holders(lock)


class Waiters(gdb.Command):
    """Threads that sleep for a range, by lock, and the holders of those locks."""

    def __init__(self):
        super().__init__("spanlock", gdb.COMMAND_STACK)

    def invoke(self, _argument, _from_tty):
        selected = gdb.selected_thread()
        locks = {}
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            try:
                self.look(thread, locks)
            except (gdb.error, gdb.GdbError) as error:
                print(f"thread {thread.ptid[1]}: {error}")
        if selected is not None:
            selected.switch()
        if not locks:
            print("no thread sleeps for a range, or there is no debug information with types")
        for lock, (waiting, held) in sorted(locks.items()):
            print(f"lock {lock:#x}")
            print(f"  awaited by {len(waiting)}")
            for wait in waiting:
                print(f"    {wait}")
            print(f"  held by {len(held)}")
            for holder in held:
                print(f"    {holder}")

    @staticmethod
    def look(thread, locks):
        frame, waiter = gdb.newest_frame(), None
        while frame is not None:
            name = frame.name() or ""
            if waiter is None and name.startswith(SLEEP):
                waiter = frame.read_var("self").dereference()
            elif waiter is not None:
                lock = Waiters.lock_of(frame)
                if lock is not None:
                    address = int(waiter["queue"])
                    waiting, held = locks.setdefault(address, ([], []))
                    request = waiter["request"]
                    mode = str(request["mode"]).rsplit("::", 1)[-1].lower()
                    at = place(innermost(waiter["at"]))
                    owner = innermost(request["owner"])
                    asks = who(owner)
                    if owner >= FIRST_OWNER:
                        asks += f" (thread {thread.ptid[1]})"
                    waiting.append(f"{asks}: {span(request)} {mode}{at}")
                    held[:] = list(holders(lock))
                    return
            frame = frame.older()

    @staticmethod
    def lock_of(frame):
        """The lock, if the frame is of a method of it."""
        try:
            value = frame.read_var("self")
        except (gdb.error, ValueError):
            return None
        if value.type.strip_typedefs().code != gdb.TYPE_CODE_PTR:
            return None
        target = str(value.type.strip_typedefs().target())
        raw = ("spanlock::range::list::RawList<", "spanlock::range::slots::RawSlots")
        return value.dereference() if target.startswith(raw) else None


Holders()
Waiters()
