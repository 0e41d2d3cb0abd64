// What lock managers of RocksDB do, case by case.
//
//     cases [spanlock|ranges|points] [NAME…]
//
// Each case runs in a process of its own, so one that ends it or hangs fails alone. With RocksDB's managers, what fails
// is printed, and is no error: a case says what this library does.

#include "harness.h"

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <set>

using namespace harness;

namespace {

// --- Points.

void again_by_the_same(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin(0);
    GOOD(LockKey(one.get(), "k"));
    GOOD(LockKey(one.get(), "k"));
    GOOD(LockKey(one.get(), "k", false));
    ANSWERS(IsTimedOut, LockKey(two.get(), "k", false));
    GOOD(LockKey(one.get(), "s", false));
    GOOD(LockKey(one.get(), "s", false));
    GOOD(LockKey(two.get(), "s", false));
    ANSWERS(IsTimedOut, LockKey(two.get(), "s"));
}

void conflicts(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0), three = at.Begin(0);
    for (const bool first : {false, true}) {
        for (const bool second : {false, true}) {
            GOOD(LockKey(one.get(), "k", first));
            const Status status = LockKey(two.get(), "k", second);
            CHECK(first || second ? status.IsTimedOut() : status.ok());
            GOOD(LockKey(three.get(), "l"));
            GOOD(one->Rollback());
            GOOD(two->Rollback());
            GOOD(LockKey(three.get(), "k"));
            GOOD(three->Rollback());
        }
    }
    GOOD(one->Put("k", "v"));
    ANSWERS(IsTimedOut, two->Put("k", "w"));
    ANSWERS(IsTimedOut, two->Delete("k"));
    GOOD(one->Commit());
    GOOD(two->Put("k", "w"));
    GOOD(two->Commit());
}

void many_share(Kind kind) {
    Database at(kind);
    std::vector<Txn> all;
    for (int count = 0; count < 20; ++count) {
        all.push_back(at.Begin(0));
        GOOD(LockKey(all.back().get(), "k", false));
    }
    Txn writer = at.Begin(0);
    for (Txn &one : all) {
        ANSWERS(IsTimedOut, LockKey(writer.get(), "k"));
        GOOD(one->Rollback());
    }
    GOOD(LockKey(writer.get(), "k"));
}

void upgrade(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockKey(one.get(), "k", false));
    GOOD(LockKey(two.get(), "k", false));
    ANSWERS(IsTimedOut, LockKey(one.get(), "k"));
    GOOD(LockKey(two.get(), "k", false)); // It still shares it.
    GOOD(two->Rollback());
    GOOD(LockKey(one.get(), "k"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "k", false));
    GOOD(one->Rollback());
    GOOD(LockKey(two.get(), "k"));
}

void writes_outside_of_transactions(Kind kind) {
    Database at(kind);
    Txn one = at.Begin();
    GOOD(one->Put("k", "v"));
    ANSWERS(IsTimedOut, at.db->Put({}, "k", "w"));
    rocksdb::WriteBatch batch;
    GOOD(batch.Put("a", "w"));
    GOOD(batch.Put("k", "w"));
    ANSWERS(IsTimedOut, at.db->Write({}, &batch));
    GOOD(at.db->Put({}, "a", "w")); // What the batch had locked is free.
    GOOD(one->Commit());
    GOOD(at.db->Write({}, &batch));
    Txn two = at.Begin(0);
    GOOD(LockKey(two.get(), "k"));
}

void undo(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin(0);
    GOOD(LockKey(one.get(), "k"));
    GOOD(LockKey(one.get(), "l"));
    GOOD(one->Put("l", "v"));
    one->UndoGetForUpdate("k");
    one->UndoGetForUpdate("l");
    GOOD(LockKey(two.get(), "k"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "l")); // It was written.
}

void savepoints(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin(0);
    GOOD(one->Put("a", "v"));
    GOOD(LockKey(one.get(), "s", false));
    one->SetSavePoint();
    GOOD(one->Put("a", "w"));
    GOOD(one->Put("b", "v"));
    one->SetSavePoint();
    GOOD(one->Put("c", "v"));
    GOOD(one->RollbackToSavePoint());
    GOOD(LockKey(two.get(), "c"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "b"));
    one->SetSavePoint();
    GOOD(one->Put("d", "v"));
    GOOD(one->PopSavePoint());
    GOOD(one->RollbackToSavePoint());
    GOOD(LockKey(two.get(), "b"));
    GOOD(LockKey(two.get(), "d"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "a"));
    GOOD(LockKey(two.get(), "s", false));
    ANSWERS(IsNotFound, one->RollbackToSavePoint());
    GOOD(one->Commit());
    GOOD(LockKey(two.get(), "a"));
}

void snapshots(Kind kind) {
    Database at(kind);
    GOOD(at.db->Put({}, "k", "first"));
    Txn one = at.Begin(), two = at.Begin(0), three = at.Begin(0);
    one->SetSnapshot();
    GOOD(two->Put("k", "second"));
    GOOD(two->Commit());
    ANSWERS(IsBusy, one->Put("k", "third"));
    GOOD(LockKey(three.get(), "k")); // It is not locked by the write that has failed.
    GOOD(three->Rollback());
    // What was locked before stays locked when a later check fails.
    GOOD(one->PutUntracked("u", "v"));
    one->SetSnapshot();
    GOOD(one->Put("u", "w"));
    ANSWERS(IsTimedOut, LockKey(three.get(), "u"));
}

// --- Ranges.

void range_basics(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockRange(one.get(), "a", "c"));
    ANSWERS(IsTimedOut, LockRange(two.get(), "b", "z"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "b"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "a", false));
    ANSWERS(IsTimedOut, LockKey(two.get(), "c"));
    GOOD(LockKey(two.get(), "ca"));
    GOOD(one->Put("n", "v"));
    ANSWERS(IsTimedOut, LockRange(two.get(), "m", "p"));
    GOOD(LockRange(two.get(), "o", "p"));
    GOOD(one->Commit());
    GOOD(LockRange(two.get(), "a", "z"));
}

void range_over_points(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockKey(one.get(), "b"));
    GOOD(LockKey(one.get(), "d", false));
    GOOD(LockRange(one.get(), "a", "e"));
    GOOD(LockRange(one.get(), "c", "g"));
    for (const char *key : {"a", "b", "bb", "d", "e", "g"}) ANSWERS(IsTimedOut, LockKey(two.get(), key, false));
    GOOD(LockKey(two.get(), "h"));
    GOOD(one->Rollback());
    GOOD(LockRange(two.get(), "a", "z"));
}

void range_over_a_share_of_another(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(20), two = at.Begin(20);
    GOOD(LockKey(one.get(), "a", false));
    GOOD(LockKey(two.get(), "a", false));
    ANSWERS(IsTimedOut, LockRange(one.get(), "a", "b"));
    // The attempt has left nothing.
    GOOD(LockKey(two.get(), "b"));
    GOOD(one->Rollback());
    GOOD(LockRange(two.get(), "a", "b"));
}

void write_in_own_range(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockRange(one.get(), "a", "c"));
    GOOD(one->Put(at.Default(), "b", "v", true)); // It is held: nothing is asked.
    GOOD(one->Put("bb", "v"));
    GOOD(one->Commit());
    std::string value;
    GOOD(at.db->Get({}, "b", &value));
    CHECK(value == "v");
    GOOD(LockRange(two.get(), "a", "c"));
}

void snapshot_before_a_range(Kind kind) {
    Database at(kind);
    GOOD(at.db->Put({}, "k", "first"));
    Txn one = at.Begin(0);
    one->SetSnapshot();
    GOOD(at.db->Put({}, "k", "second"));
    GOOD(LockRange(one.get(), "a", "z"));
    ANSWERS(IsBusy, one->Put("k", "third")); // Changed between the snapshot and the lock.
}

void savepoint_with_ranges(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockRange(one.get(), "a", "c"));
    GOOD(LockKey(one.get(), "k"));
    one->SetSavePoint();
    GOOD(LockRange(one.get(), "b", "m"));
    GOOD(one->Put("l", "v"));
    GOOD(one->Put("x", "v"));
    GOOD(one->RollbackToSavePoint());
    GOOD(LockKey(two.get(), "d"));
    GOOD(LockKey(two.get(), "l"));
    GOOD(LockKey(two.get(), "x"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "b"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "k"));
    GOOD(one->Commit());
    GOOD(LockRange(two.get(), "a", "z"));
}

void savepoint_with_an_upgrade_within_a_range(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockKey(one.get(), "k", false));
    one->SetSavePoint();
    GOOD(LockRange(one.get(), "a", "z"));
    GOOD(LockKey(one.get(), "k")); // From now on the transaction takes it for its own, also without the range.
    GOOD(one->RollbackToSavePoint());
    ANSWERS(IsTimedOut, LockKey(two.get(), "k", false));
    GOOD(LockKey(two.get(), "l"));
    GOOD(one->Put("k", "v"));
    GOOD(one->Commit());
    GOOD(LockKey(two.get(), "k"));
}

void prefixes(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(one->GetRangeLock(at.Default(), Endpoint("ab"), Endpoint("ab", true)));
    for (const char *key : {"ab", "abc", "ab\xff\xff"}) ANSWERS(IsTimedOut, LockKey(two.get(), key));
    GOOD(LockKey(two.get(), "aa"));
    GOOD(LockKey(two.get(), "ac"));
    GOOD(LockKey(two.get(), "a"));
    GOOD(one->Rollback());
    GOOD(two->Rollback());
    GOOD(one->GetRangeLock(at.Default(), Endpoint("ab", true), Endpoint("b"))); // Behind all that begin so.
    GOOD(LockKey(two.get(), "ab"));
    GOOD(LockKey(two.get(), "abz"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "b"));
}

void readers_of_one_range(Kind kind) {
    Database at(kind);
    std::vector<Txn> all;
    for (int count = 0; count < 8; ++count) {
        all.push_back(at.Begin(0));
        GOOD(at.Share(all.back().get(), Endpoint("a"), Endpoint("z")));
    }
    Txn writer = at.Begin(0);
    ANSWERS(IsTimedOut, LockKey(writer.get(), "k"));
    GOOD(LockKey(all[0].get(), "k", false)); // Within what it shares.
    ANSWERS(IsTimedOut, LockKey(all[0].get(), "k"));
    for (Txn &one : all) GOOD(one->Rollback());
    GOOD(LockKey(writer.get(), "k"));
}

void part_of_a_share_becomes_exclusive(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(at.Share(one.get(), Endpoint("a"), Endpoint("z")));
    GOOD(LockKey(one.get(), "k"));
    GOOD(LockRange(one.get(), "p", "q"));
    GOOD(at.Share(two.get(), Endpoint("a"), Endpoint("j")));
    GOOD(LockKey(two.get(), "l", false));
    ANSWERS(IsTimedOut, LockKey(two.get(), "k", false));
    ANSWERS(IsTimedOut, LockKey(two.get(), "pp", false));
    GOOD(LockKey(two.get(), "r", false));
}

void reversed_range(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0);
    ANSWERS(IsInvalidArgument, LockRange(one.get(), "z", "a"));
    GOOD(LockRange(one.get(), "a", "a"));
}

// --- Waiting.

void timeouts(Kind kind) {
    using Clock = std::chrono::steady_clock;
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin(40);
    GOOD(LockKey(one.get(), "k"));
    const auto begun = Clock::now();
    const Status status = LockKey(two.get(), "k");
    CHECK(status.IsTimedOut() && status.subcode() == Status::SubCode::kLockTimeout);
    CHECK(Clock::now() - begun >= std::chrono::milliseconds(39));
    two->SetLockTimeout(0);
    ANSWERS(IsTimedOut, LockKey(two.get(), "k"));
    two->SetLockTimeout(-1); // For ever.
    Call call([&] { return LockKey(two.get(), "k"); });
    Sleep(100);
    GOOD(one->Commit());
    GOOD(call.Answer());
}

void who_waits_gets_it(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin(60000);
    GOOD(at.kind == Kind::Points ? LockKey(one.get(), "b") : LockRange(one.get(), "a", "c"));
    Call call([&] {
        return at.kind == Kind::Points ? LockKey(two.get(), "b") : LockRange(two.get(), "b", "z");
    });
    AwaitWait(two.get());
    GOOD(one->Rollback());
    one.reset(); // It does not exist any more when the other one wakes.
    GOOD(call.Answer());
}

void who_is_waited_for(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin(), three = at.Begin(60000);
    GOOD(LockKey(one.get(), "k", false));
    GOOD(LockKey(two.get(), "k", false));
    Call call([&] { return LockKey(three.get(), "k"); });
    AwaitWait(three.get());
    std::uint32_t family = 77;
    std::string key;
    auto ids = three->GetWaitingTxns(&family, &key);
    std::sort(ids.begin(), ids.end());
    std::vector<rocksdb::TransactionID> expected{one->GetID(), two->GetID()};
    std::sort(expected.begin(), expected.end());
    GOOD(one->Rollback());
    GOOD(two->Rollback());
    GOOD(call.Answer());
    CHECK(ids == expected && family == 0 && key == "k");
    CHECK(three->GetWaitingTxns(&family, &key).empty());
}

void waits_are_counted(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin(10);
    GOOD(LockRange(one.get(), "a", "c"));
    const auto before = at.ranges->GetStatus().lock_wait_count;
    ANSWERS(IsTimedOut, LockRange(two.get(), "b", "z"));
    CHECK(at.ranges->GetStatus().lock_wait_count == before + 1);
}

void all_who_wait_get_it(Kind kind) {
    Database at(kind);
    Txn holder = at.Begin();
    GOOD(LockKey(holder.get(), "k"));
    std::vector<Txn> all;
    std::vector<std::unique_ptr<Call>> calls;
    for (int count = 0; count < 8; ++count) {
        all.push_back(at.Begin(60000));
        Transaction *waits = all.back().get();
        calls.push_back(std::make_unique<Call>([waits] {
            const Status status = LockKey(waits, "k");
            return status.ok() ? waits->Commit() : status;
        }));
    }
    for (Txn &one : all) AwaitWait(one.get());
    GOOD(holder->Commit());
    for (auto &call : calls) GOOD(call->Answer());
}

void cancelled(Kind kind) {
    Database at(kind);
    if (!at.spanlock) throw Failure("it has no function for that");
    Txn one = at.Begin(), two = at.Begin(60000);
    GOOD(LockKey(one.get(), "k"));
    GOOD(LockKey(two.get(), "l"));
    Call call([&] { return LockKey(two.get(), "k"); });
    AwaitWait(two.get());
    at.spanlock->Cancel(two.get());
    ANSWERS(IsAborted, call.Answer());
    ANSWERS(IsAborted, LockKey(two.get(), "k"));
    GOOD(LockKey(two.get(), "m")); // It need not wait.
    GOOD(two->Rollback());
    Txn three = at.Begin(0);
    GOOD(LockKey(three.get(), "l"));
    GOOD(three->Rollback());
    two->SetLockTimeout(20);
    ANSWERS(IsTimedOut, LockKey(two.get(), "k")); // Another transaction.
}

void cancelled_without_locks(Kind kind) {
    Database at(kind);
    if (!at.spanlock) throw Failure("it has no function for that");
    Txn holder = at.Begin();
    GOOD(LockKey(holder.get(), "k"));
    Txn one = at.Begin(20);
    at.spanlock->Cancel(one.get());
    GOOD(one->Rollback());
    ANSWERS(IsTimedOut, LockKey(one.get(), "k")); // Another transaction.
    at.spanlock->Cancel(one.get());
    one.reset();
    ANSWERS(IsTimedOut, LockKey(at.Begin(20).get(), "k"));
}

void cancelled_second_upgrade(Kind kind) {
    Database at(kind);
    if (!at.spanlock) throw Failure("it has no function for that");
    Txn one = at.Begin(60000), two = at.Begin(3000);
    GOOD(LockKey(one.get(), "k", false));
    GOOD(LockKey(two.get(), "k", false));
    Call first([&] { return LockKey(one.get(), "k"); });
    AwaitWait(one.get());
    Call second([&] { return LockKey(two.get(), "k"); });
    AwaitWait(two.get());
    at.spanlock->Cancel(two.get());
    const Status status = second.Answer();
    GOOD(two->Rollback());
    GOOD(first.Answer());
    CHECK(status.IsAborted());
}

void one_limit_of_time_for_a_range(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(1000), early = at.Begin(), late = at.Begin();
    GOOD(LockKey(one.get(), "b"));
    GOOD(LockKey(early.get(), "a"));
    GOOD(LockKey(late.get(), "c"));
    Call call([&] { return LockRange(one.get(), "a", "d"); });
    AwaitWait(one.get());
    Sleep(600);
    GOOD(early->Rollback());
    Sleep(800); // Longer than the limit, all in all.
    GOOD(late->Rollback());
    ANSWERS(IsTimedOut, call.Answer());
}

// --- Deadlocks.

void deadlock_of_points(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(60000, true), two = at.Begin(60000, true);
    GOOD(LockKey(one.get(), "k1"));
    GOOD(LockKey(two.get(), "k2"));
    Call call([&] { return LockKey(one.get(), "k2"); });
    AwaitWait(one.get());
    const Status refused = LockKey(two.get(), "k1");
    const auto paths = at.db->GetDeadlockInfoBuffer();
    GOOD(two->Rollback());
    GOOD(call.Answer());
    CHECK(IsDeadlock(refused));
    CHECK(paths.size() == 1 && !paths[0].limit_exceeded && paths[0].path.size() == 2 && paths[0].deadlock_time > 0);
    const auto &first = paths[0].path[0], &second = paths[0].path[1];
    CHECK(first.m_txn_id == one->GetID() && first.m_waiting_key == "k2" && first.m_exclusive && first.m_cf_id == 0);
    CHECK(second.m_txn_id == two->GetID() && second.m_waiting_key == "k1" && second.m_exclusive);
}

void deadlock_of_ranges(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(60000, true), two = at.Begin(60000, true);
    GOOD(LockRange(one.get(), "a", "c"));
    GOOD(LockRange(two.get(), "m", "p"));
    Call call([&] { return LockRange(one.get(), "o", "z"); });
    AwaitWait(one.get());
    const Status refused = LockRange(two.get(), "b", "d");
    const auto paths = at.ranges->GetRangeDeadlockInfoBuffer();
    GOOD(two->Rollback());
    GOOD(call.Answer());
    CHECK(IsDeadlock(refused));
    CHECK(paths.size() == 1 && paths[0].path.size() == 2);
    const auto &first = paths[0].path[0], &second = paths[0].path[1];
    CHECK(first.m_txn_id == one->GetID() && first.m_start.slice == "o" && first.m_end.slice == "z");
    CHECK(second.m_txn_id == two->GetID() && second.m_start.slice == "b" && second.m_end.slice == "d");
    CHECK(first.m_exclusive && !first.m_start.inf_suffix && !first.m_end.inf_suffix);
}

void deadlock_of_five(Kind kind) {
    Database at(kind);
    constexpr int count = 5;
    std::vector<Txn> all;
    std::vector<std::unique_ptr<Call>> calls;
    for (int number = 0; number < count; ++number) {
        all.push_back(at.Begin(60000, true));
        GOOD(LockKey(all.back().get(), std::to_string(number)));
    }
    for (int number = 0; number + 1 < count; ++number) {
        Transaction *waits = all[number].get();
        calls.push_back(std::make_unique<Call>([=] {
            const Status status = LockKey(waits, std::to_string(number + 1));
            waits->Rollback();
            return status;
        }));
        AwaitWait(waits);
    }
    const Status refused = LockKey(all.back().get(), "0");
    GOOD(all.back()->Rollback());
    for (auto &call : calls) GOOD(call->Answer());
    CHECK(IsDeadlock(refused));
    const auto path = at.db->GetDeadlockInfoBuffer().at(0).path;
    CHECK(path.size() == count);
    for (int number = 0; number < count; ++number) CHECK(path[number].m_txn_id == all[number]->GetID());
}

void deadlock_of_upgrades(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(60000, true), two = at.Begin(60000, true);
    GOOD(LockKey(one.get(), "k", false));
    GOOD(LockKey(two.get(), "k", false));
    Call call([&] { return LockKey(one.get(), "k"); });
    AwaitWait(one.get());
    const Status refused = LockKey(two.get(), "k");
    const auto paths = at.db->GetDeadlockInfoBuffer();
    GOOD(two->Rollback());
    GOOD(call.Answer());
    CHECK(IsDeadlock(refused));
    CHECK(paths.size() == 1);
    std::set<rocksdb::TransactionID> both;
    for (const auto &step : paths[0].path) both.insert(step.m_txn_id);
    CHECK(both == (std::set<rocksdb::TransactionID>{one->GetID(), two->GetID()}));
}

void deadlock_of_range_upgrades(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(60000, true), two = at.Begin(60000, true);
    GOOD(at.Share(one.get(), Endpoint("a"), Endpoint("m")));
    GOOD(at.Share(two.get(), Endpoint("g"), Endpoint("z")));
    Call call([&] { return LockRange(one.get(), "a", "m"); });
    AwaitWait(one.get());
    const Status refused = LockRange(two.get(), "h", "h");
    const auto paths = at.ranges->GetRangeDeadlockInfoBuffer();
    GOOD(two->Rollback());
    GOOD(call.Answer());
    CHECK(IsDeadlock(refused) && paths.size() == 1 && paths[0].path.size() == 2);
}

void no_ring_of_one(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(30, true), two = at.Begin(30, true);
    GOOD(LockKey(one.get(), "k", false));
    GOOD(LockKey(two.get(), "k", false));
    ANSWERS(IsTimedOut, LockKey(one.get(), "k")); // The other one waits for nothing.
    CHECK(at.db->GetDeadlockInfoBuffer().empty());
}

void deadlock_through_a_reader(Kind kind) {
    // Of two that share a key, the second one closes the ring.
    Database at(kind);
    Txn one = at.Begin(60000, true), two = at.Begin(60000, true), three = at.Begin(60000, true);
    GOOD(LockKey(one.get(), "k", false));
    GOOD(LockKey(two.get(), "k", false));
    GOOD(LockKey(three.get(), "l"));
    Call call([&] { return LockKey(three.get(), "k"); });
    AwaitWait(three.get());
    const Status refused = LockKey(two.get(), "l");
    GOOD(two->Rollback());
    GOOD(one->Rollback());
    GOOD(call.Answer());
    CHECK(IsDeadlock(refused));
}

void deadlock_deeper_than_asked(Kind kind) {
    // A ring of four is one, also if a transaction asks for a search of one step; and a line without a ring is none.
    Database at(kind);
    constexpr int count = 4;
    TransactionOptions options;
    options.lock_timeout = 60000;
    options.deadlock_detect = true;
    options.deadlock_detect_depth = 1;
    std::vector<Txn> all;
    std::vector<std::unique_ptr<Call>> calls;
    for (int number = 0; number < count; ++number) {
        all.emplace_back(at.db->BeginTransaction({}, options));
        GOOD(LockKey(all.back().get(), std::to_string(number)));
    }
    for (int number = count - 2; number >= 0; --number) {
        Transaction *waits = all[number].get();
        calls.push_back(std::make_unique<Call>([=] {
            const Status status = LockKey(waits, std::to_string(number + 1));
            waits->Rollback();
            return status;
        }));
        AwaitWait(waits);
    }
    const Status refused = LockKey(all.back().get(), "0");
    GOOD(all.back()->Rollback());
    for (auto &call : calls) GOOD(call->Answer());
    CHECK(IsDeadlock(refused));
    const auto paths = at.db->GetDeadlockInfoBuffer();
    CHECK(paths.size() == 1 && !paths[0].limit_exceeded && paths[0].path.size() == count);
}

void deadlock_buffer(Kind kind) {
    rocksdb::TransactionDBOptions locking;
    locking.max_num_deadlocks = 2;
    spanlock_rocksdb::Options options;
    options.max_num_deadlocks = 2;
    Database at(kind, options, locking);
    if (kind == Kind::Ranges) at.ranges->SetRangeDeadlockInfoBufferSize(2);
    const auto ring = [&](const std::string &prefix) {
        Txn one = at.Begin(60000, true), two = at.Begin(60000, true);
        GOOD(LockKey(one.get(), prefix + "1"));
        GOOD(LockKey(two.get(), prefix + "2"));
        Call call([&] { return LockKey(one.get(), prefix + "2"); });
        AwaitWait(one.get());
        const Status refused = LockKey(two.get(), prefix + "1");
        GOOD(two->Rollback());
        GOOD(call.Answer());
        CHECK(IsDeadlock(refused));
    };
    for (const char *prefix : {"a", "b", "c"}) ring(prefix);
    auto paths = at.db->GetDeadlockInfoBuffer();
    CHECK(paths.size() == 2);
    CHECK(paths[0].path[0].m_waiting_key == "c2" && paths[1].path[0].m_waiting_key == "b2");
    at.db->SetDeadlockInfoBufferSize(1);
    paths = at.db->GetDeadlockInfoBuffer();
    CHECK(paths.size() == 1 && paths[0].path[0].m_waiting_key == "c2");
    at.db->SetDeadlockInfoBufferSize(5);
    ring("d");
    CHECK(at.db->GetDeadlockInfoBuffer().size() == 2);
}

// --- Transactions that expire.

void expired_is_robbed(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0, false, 500), two = at.Begin(0);
    GOOD(one->Put("k", "one"));
    GOOD(one->Put("l", "one"));
    ANSWERS(IsTimedOut, two->Put("k", "two"));
    Sleep(600);
    GOOD(two->Put("k", "two"));
    ANSWERS(IsExpired, one->Commit());
    ANSWERS(IsTimedOut, LockKey(at.Begin(0).get(), "k"));
    GOOD(two->Commit());
    one.reset();
    GOOD(LockKey(at.Begin(0).get(), "l"));
}

void expires_while_another_waits(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0, false, 60), two = at.Begin(60000);
    GOOD(one->Put("k", "one"));
    GOOD(two->Put("k", "two"));
    GOOD(two->Commit());
    CHECK(!one->Commit().ok());
}

void not_yet_expired(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0, false, 60000), two = at.Begin(10);
    GOOD(one->Put("k", "one"));
    ANSWERS(IsTimedOut, two->Put("k", "two"));
    GOOD(one->Commit());
    GOOD(two->Put("k", "two"));
}

void expired_range_is_robbed(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0, false, 30), two = at.Begin(0);
    GOOD(LockRange(one.get(), "a", "m"));
    GOOD(LockKey(one.get(), "z"));
    Sleep(50);
    GOOD(LockRange(two.get(), "k", "p"));
    ANSWERS(IsExpired, LockKey(one.get(), "x"));
    ANSWERS(IsExpired, one->Commit());
    GOOD(LockKey(two.get(), "x"));
    GOOD(LockKey(two.get(), "z"));
    one.reset();
    GOOD(LockKey(at.Begin(0).get(), "a"));
}

void expired_is_robbed_as_it_waits(Kind kind) {
    Database at(kind);
    for (const bool shares : {true, false}) {
        for (const bool detects : {true, false}) {
            // It waits to have alone what it shares.
            Txn one = at.Begin(60000, false, 30), two = at.Begin(3000, detects), three = at.Begin(3000);
            GOOD(LockKey(one.get(), "k", false));
            GOOD(LockKey(one.get(), "l"));
            GOOD(LockKey(three.get(), "k", false));
            if (shares) GOOD(LockKey(two.get(), "k", false));
            Call call([&] { return LockKey(one.get(), "k"); });
            AwaitWait(one.get());
            Sleep(50);
            if (shares) GOOD(three->Rollback());
            Call robber([&] { return LockKey(two.get(), "k"); });
            const Status robbed = call.Answer();
            if (!shares) GOOD(three->Rollback());
            GOOD(robber.Answer());
            CHECK(robbed.IsExpired());
            GOOD(LockKey(two.get(), "l"));
            ANSWERS(IsExpired, one->Commit());
            GOOD(two->Rollback());
            // It waits for what another one has.
            one = at.Begin(60000, false, 30);
            GOOD(LockKey(one.get(), "l"));
            GOOD(LockKey(three.get(), "m"));
            Call other([&] { return LockKey(one.get(), "m"); });
            AwaitWait(one.get());
            Sleep(50);
            GOOD(LockKey(two.get(), "l"));
            ANSWERS(IsExpired, other.Answer());
            GOOD(two->Rollback());
        }
    }
}

void comes_later_and_expires(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin(60000);
    GOOD(LockKey(one.get(), "a"));
    Call call([&] { return LockRange(two.get(), "a", "z"); });
    AwaitWait(two.get());
    Txn three = at.Begin(60000, false, 300);
    GOOD(LockKey(three.get(), "m"));
    GOOD(one->Rollback());
    GOOD(call.Answer());
    ANSWERS(IsExpired, three->Commit());
}

// --- Column families, comparators.

void column_families(Kind kind) {
    Database at(kind);
    ColumnFamilyHandle *other = nullptr;
    GOOD(at.db->CreateColumnFamily({}, "other", &other));
    {
        Txn one = at.Begin(0), two = at.Begin(0);
        GOOD(LockKey(one.get(), "k"));
        GOOD(LockKey(two.get(), "k", true, other));
        ANSWERS(IsTimedOut, LockKey(two.get(), "k"));
        ANSWERS(IsTimedOut, LockKey(one.get(), "k", true, other));
        if (kind != Kind::Points) {
            GOOD(LockRange(one.get(), "l", "z"));
            GOOD(two->GetRangeLock(other, Endpoint("l"), Endpoint("z")));
            ANSWERS(IsTimedOut, one->GetRangeLock(other, Endpoint("m"), Endpoint("m")));
        }
    }
    {
        // It is dropped while a transaction holds something there.
        Txn one = at.Begin(0);
        GOOD(LockKey(one.get(), "k", true, other));
        GOOD(at.db->DropColumnFamily(other));
        GOOD(one->Rollback());
        ANSWERS(IsInvalidArgument, LockKey(one.get(), "k", true, other));
        GOOD(LockKey(one.get(), "k"));
    }
    GOOD(at.db->DestroyColumnFamilyHandle(other));
    GOOD(at.db->CreateColumnFamily({}, "third", &other));
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockKey(one.get(), "k", true, other));
    ANSWERS(IsTimedOut, LockKey(two.get(), "k", true, other));
    one.reset();
    two.reset();
    GOOD(at.db->DestroyColumnFamilyHandle(other));
}

void reverse_points(Kind kind) {
    Database at(kind, {}, {}, rocksdb::ReverseBytewiseComparator());
    Txn one = at.Begin(0), two = at.Begin(0);
    for (const char *key : {"a", "ab", "abc", "b", "c"}) GOOD(LockKey(one.get(), key));
    for (const char *key : {"a", "ab", "abc", "b", "c"}) ANSWERS(IsTimedOut, LockKey(two.get(), key));
    GOOD(LockKey(two.get(), "abcd"));
    GOOD(one->Rollback());
    GOOD(LockKey(two.get(), "a"));
}

void reverse_ranges(Kind kind) {
    Database at(kind, {}, {}, rocksdb::ReverseBytewiseComparator());
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockRange(one.get(), "m", "c"));
    for (const char *key : {"m", "k", "ca", "c"}) ANSWERS(IsTimedOut, LockKey(two.get(), key));
    for (const char *key : {"ma", "n", "bz"}) GOOD(LockKey(two.get(), key));
    ANSWERS(IsTimedOut, LockRange(two.get(), "z", "l"));
    GOOD(one->Rollback());
    GOOD(one->GetRangeLock(at.Default(), Endpoint("de"), Endpoint("de", true))); // All that begin so.
    for (const char *key : {"de", "dez", "dea"}) ANSWERS(IsTimedOut, LockKey(two.get(), key));
    GOOD(LockKey(two.get(), "d"));
    GOOD(LockKey(two.get(), "df"));
    GOOD(LockKey(two.get(), "ddz"));
}

/// Keys of bytes that no byte is behind, and of none.
void last_bytes(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    const std::string last = "\xff", zero(1, '\0');
    for (const std::string &key : {std::string(), last, last + zero, last + last}) {
        GOOD(LockKey(one.get(), key));
        ANSWERS(IsTimedOut, LockKey(two.get(), key));
    }
    GOOD(LockKey(two.get(), zero));
    GOOD(LockKey(two.get(), last + zero + last));
    GOOD(one->Rollback());
    GOOD(two->Rollback());
    GOOD(one->GetRangeLock(at.Default(), Endpoint("a" + last), Endpoint("a" + last, true)));
    for (const std::string &more : {std::string(), zero, last, last + last + last, last + zero + "z"})
        ANSWERS(IsTimedOut, LockKey(two.get(), "a" + last + more));
    for (const char *key : {"a", "a\xfe", "a\xfe\xff\xff", "b"}) GOOD(LockKey(two.get(), key));
    GOOD(two->Rollback());
    const auto all = at.ranges->GetRangeLockStatusData();
    CHECK(all.size() == 1);
    const rocksdb::RangeLockInfo &info = all.begin()->second;
    CHECK(info.start.slice == "a" + last && !info.start.inf_suffix);
    CHECK(info.end.slice == "a" + last && info.end.inf_suffix);
    GOOD(one->Rollback());
    // Behind all keys that begin so.
    GOOD(two->GetRangeLock(at.Default(), Endpoint("a" + last, true), Endpoint("c")));
    GOOD(one->GetRangeLock(at.Default(), Endpoint(""), Endpoint("a" + last + last)));
    GOOD(LockKey(one.get(), "a" + last + last + last));
    ANSWERS(IsTimedOut, LockKey(one.get(), "b"));
}

/// Takes letters of both cases for the same.
class CaseBlind : public rocksdb::Comparator {
  public:
    const char *Name() const override { return "spanlock.case-blind"; }
    int Compare(const rocksdb::Slice &one, const rocksdb::Slice &other) const override {
        const int order = strncasecmp(one.data(), other.data(), std::min(one.size(), other.size()));
        return order != 0 ? order : int(one.size() > other.size()) - int(one.size() < other.size());
    }
    void FindShortestSeparator(std::string *, const rocksdb::Slice &) const override {}
    void FindShortSuccessor(std::string *) const override {}
};

void case_blind(Kind kind) {
    static const CaseBlind comparator;
    Database at(kind, {}, {}, &comparator);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(LockKey(one.get(), "Key"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "kEY"));
    one->SetSavePoint();
    GOOD(LockKey(one.get(), "kEY"));
    GOOD(one->RollbackToSavePoint());
    ANSWERS(IsTimedOut, LockKey(two.get(), "key")); // By its first name it is still locked.
    GOOD(one->Rollback());
    GOOD(LockKey(two.get(), "key"));
    if (kind == Kind::Points) return;
    GOOD(LockRange(one.get(), "A", "c"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "B"));
    ANSWERS(IsTimedOut, LockKey(two.get(), "C"));
    GOOD(LockKey(two.get(), "D"));
}

/// The order of bytes, until it throws.
class Throwing : public rocksdb::Comparator {
  public:
    const char *Name() const override { return "spanlock.throwing"; }
    int Compare(const rocksdb::Slice &one, const rocksdb::Slice &other) const override {
        if (throws) throw std::runtime_error("from the comparator");
        return one.compare(other);
    }
    void FindShortestSeparator(std::string *, const rocksdb::Slice &) const override {}
    void FindShortSuccessor(std::string *) const override {}
    mutable std::atomic<bool> throws{false};
};

void throwing_comparator(Kind kind) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        static const Throwing comparator;
        close(STDERR_FILENO); // What the process says at its end.
        try {
            Database at(kind, {}, {}, &comparator);
            Txn one = at.Begin(0), two = at.Begin(0);
            for (const char *key : {"a", "b", "c"}) GOOD(LockKey(one.get(), key));
            comparator.throws = true;
            (void)at.Share(two.get(), Endpoint("b"), Endpoint("c"));
        } catch (const std::exception &) {
        }
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/// The order of bytes, of keys that end with a timestamp of eight bytes, the latest first.
class Timed : public rocksdb::Comparator {
  public:
    Timed() : Comparator(size) {}
    const char *Name() const override { return "spanlock.timed"; }
    int Compare(const rocksdb::Slice &one, const rocksdb::Slice &other) const override {
        const int order = CompareWithoutTimestamp(one, true, other, true);
        return order != 0 ? order : -CompareTimestamp(Last(one), Last(other));
    }
    int CompareTimestamp(const rocksdb::Slice &one, const rocksdb::Slice &other) const override {
        std::uint64_t times[2];
        std::memcpy(&times[0], one.data(), size);
        std::memcpy(&times[1], other.data(), size);
        return int(times[0] > times[1]) - int(times[0] < times[1]);
    }
    using Comparator::CompareWithoutTimestamp;
    int CompareWithoutTimestamp(const rocksdb::Slice &one, bool one_has, const rocksdb::Slice &other,
                                bool other_has) const override {
        const rocksdb::Slice left(one.data(), one.size() - (one_has ? size : 0));
        return left.compare({other.data(), other.size() - (other_has ? size : 0)});
    }
    void FindShortestSeparator(std::string *, const rocksdb::Slice &) const override {}
    void FindShortSuccessor(std::string *) const override {}

  private:
    static constexpr std::size_t size = sizeof(std::uint64_t);
    static rocksdb::Slice Last(const rocksdb::Slice &key) { return {key.data() + key.size() - size, size}; }
};

void timestamps(Kind kind) {
    static const Timed comparator;
    Database at(kind);
    rocksdb::ColumnFamilyOptions options;
    options.comparator = &comparator;
    ColumnFamilyHandle *family = nullptr;
    GOOD(at.db->CreateColumnFamily(options, "timed", &family));
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(one->Put(family, "key", "v")); // Shorter than a timestamp.
    ANSWERS(IsTimedOut, two->Put(family, "key", "w"));
    GOOD(two->Put(family, "a key that is longer than a timestamp", "w"));
    ANSWERS(IsTimedOut, one->Put(family, "a key that is longer than a timestamp", "w"));
    if (kind != Kind::Points) {
        GOOD(one->GetRangeLock(family, Endpoint("m"), Endpoint("p")));
        ANSWERS(IsTimedOut, two->Put(family, "n", "w"));
    }
    GOOD(one->SetCommitTimestamp(5));
    GOOD(one->Commit());
    GOOD(two->Put(family, "key", "w"));
    one.reset();
    two.reset();
    GOOD(at.db->DestroyColumnFamilyHandle(family));
}

// --- Listings, limits, lives.

void lock_status(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin();
    GOOD(LockKey(one.get(), "a"));
    GOOD(LockKey(one.get(), "b", false));
    GOOD(LockKey(two.get(), "b", false));
    const auto all = at.db->GetLockStatusData();
    CHECK(all.size() == 2);
    for (const auto &[family, info] : all) {
        CHECK(family == 0 && info.exclusive == (info.key == "a"));
        CHECK(info.ids.size() == (info.key == "a" ? 1u : 2u));
        CHECK(info.key != "a" || info.ids[0] == one->GetID());
    }
    GOOD(one->Rollback());
    GOOD(two->Rollback());
    CHECK(at.db->GetLockStatusData().empty());
}

void range_status(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(), two = at.Begin();
    GOOD(LockRange(one.get(), "z", "z"));
    GOOD(LockKey(two.get(), "c"));
    GOOD(LockRange(two.get(), "b", "e")); // One, with what it had in there.
    const auto all = at.ranges->GetRangeLockStatusData();
    CHECK(all.size() == 2);
    for (const auto &[family, info] : all) {
        CHECK(family == 0 && info.exclusive && info.ids.size() == 1);
        CHECK(!info.start.inf_suffix && !info.end.inf_suffix);
        const bool is_first = info.ids[0] == one->GetID();
        CHECK(info.start.slice == (is_first ? "z" : "b") && info.end.slice == (is_first ? "z" : "e"));
        CHECK(is_first || info.ids[0] == two->GetID());
    }
}

void status_of_many(Kind kind) {
    Database at(kind);
    constexpr int count = 3000;
    Txn one = at.Begin(), two = at.Begin(), three = at.Begin();
    for (Txn *each : {&one, &two})
        for (int number = 0; number < count; ++number) GOOD(LockKey(each->get(), std::to_string(number), false));
    GOOD(LockKey(three.get(), "alone"));
    GOOD(at.Share(three.get(), Endpoint("1"), Endpoint("1000")));
    const auto all = at.ranges->GetRangeLockStatusData();
    CHECK(all.size() == count + 2);
    int ranges = 0;
    for (const auto &[family, info] : all) {
        if (info.start.slice != info.end.slice) ++ranges;
        else CHECK(info.ids.size() == (info.exclusive ? 1u : 2u));
    }
    CHECK(ranges == 1);
}

void lock_limit(Kind kind) {
    rocksdb::TransactionDBOptions locking;
    locking.max_num_locks = 3;
    spanlock_rocksdb::Options options;
    options.max_num_locks = 3;
    Database at(kind, options, locking);
    Txn one = at.Begin(0), two = at.Begin(0);
    for (const char *key : {"a", "b", "c"}) GOOD(one->Put(key, "v"));
    GOOD(one->Put("a", "w"));
    CHECK(IsLimit(one->Put("d", "v")));
    CHECK(IsLimit(two->Put("e", "v")));
    GOOD(one->Commit());
    for (const char *key : {"a", "b", "c"}) GOOD(two->Put(key, "v"));
    CHECK(IsLimit(two->Put("d", "v")));
}

void lock_limit_with_ranges(Kind kind) {
    spanlock_rocksdb::Options options;
    options.max_num_locks = 3;
    Database at(kind, options);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(at.Share(one.get(), Endpoint("a"), Endpoint("m")));
    for (char key = 'b'; key < 'j'; ++key) { // They cut the range, which is one lock all the same.
        one->SetSavePoint();
        GOOD(LockKey(one.get(), std::string(1, key)));
        GOOD(one->RollbackToSavePoint());
    }
    GOOD(LockKey(one.get(), "c"));
    GOOD(LockKey(one.get(), "c"));
    GOOD(LockKey(two.get(), "x"));
    CHECK(IsLimit(LockKey(one.get(), "d")));
    CHECK(IsLimit(LockRange(two.get(), "x", "z")));
    one->UndoGetForUpdate("c");
    one->UndoGetForUpdate("c");
    GOOD(LockRange(two.get(), "x", "z"));
    CHECK(IsLimit(LockKey(one.get(), "d")));
    GOOD(one->Rollback());
    for (const char *key : {"a", "b"}) CHECK(LockKey(one.get(), key).ok() == (*key == 'a'));
    GOOD(one->Rollback());
    GOOD(two->Rollback());
    for (const char *key : {"a", "b", "c"}) GOOD(LockKey(one.get(), key));
}

void memory_limit(Kind kind) {
    Database at(kind);
    CHECK(at.ranges->GetStatus().current_lock_memory == 0);
    CHECK(at.ranges->SetMaxLockMemory(5000) == 0);
    CHECK(at.ranges->GetMaxLockMemory() == 5000);
    Txn one = at.Begin(0);
    Status status;
    int count = 0;
    for (; status.ok() && count < 1000; ++count) status = LockKey(one.get(), "key" + std::to_string(count));
    CHECK(IsLimit(status) && count > 2);
    CHECK(at.ranges->GetStatus().current_lock_memory > 0);
    CHECK(at.ranges->SetMaxLockMemory(1) == EDOM);
    GOOD(one->Rollback());
    CHECK(at.ranges->GetStatus().current_lock_memory == 0);
    GOOD(LockKey(one.get(), "key"));
}

void large_transaction(Kind kind) {
    Database at(kind);
    Txn one = at.Begin(0), two = at.Begin(0);
    for (int number = 0; number < 20000; ++number)
        GOOD(LockKey(one.get(), std::to_string(number * 7919 % 20000), number % 2 == 0));
    ANSWERS(IsTimedOut, LockKey(two.get(), "12345"));
    GOOD(one->Rollback());
    for (int number = 0; number < 20000; number += 501) GOOD(LockKey(two.get(), std::to_string(number)));
    GOOD(LockKey(one.get(), "again"));
    GOOD(one->Rollback());
}

void goes_from_thread_to_thread(Kind kind) {
    Database at(kind);
    Txn one;
    std::thread([&] {
        one = at.Begin(0);
        (void)LockKey(one.get(), "k");
    }).join();
    Txn two = at.Begin(0);
    ANSWERS(IsTimedOut, LockKey(two.get(), "k"));
    std::thread([&] { one.reset(); }).join();
    GOOD(LockKey(two.get(), "k"));
}

void closed_and_opened(Kind kind) {
    Database at(kind);
    for (int round = 0; round < 3; ++round) {
        {
            Txn one = at.Begin(0);
            GOOD(one->Put("k", "v"));
            GOOD(LockKey(at.Begin(0).get(), "l"));
        } // Neither committed nor rolled back.
        at.Close();
        at.Open();
        GOOD(LockKey(at.Begin(0).get(), "k"));
    }
}

void prepared_and_recovered(Kind kind) {
    Database at(kind);
    Transaction *left = at.Begin(0).release();
    GOOD(left->SetName("left"));
    GOOD(left->Put("k", "v"));
    GOOD(left->Prepare());
    ANSWERS(IsTimedOut, LockKey(at.Begin(0).get(), "k"));
    GOOD(at.db->FlushWAL(true));
    delete left;
    at.Close();
    at.Open(); // RocksDB does not lock the keys of transactions that it recovers.
    left = at.db->GetTransactionByName("left");
    CHECK(left != nullptr);
    GOOD(left->Commit());
    delete left;
    GOOD(LockKey(at.Begin(0).get(), "k"));
    std::string value;
    GOOD(at.db->Get({}, "k", &value));
}

void write_prepared(Kind kind) {
    rocksdb::TransactionDBOptions locking;
    locking.write_policy = rocksdb::WRITE_PREPARED;
    Database at(kind, {}, locking);
    Txn one = at.Begin(0), two = at.Begin(0);
    GOOD(one->SetName("one"));
    GOOD(one->Put("k", "v"));
    GOOD(one->Prepare());
    ANSWERS(IsTimedOut, two->Put("k", "w"));
    GOOD(one->Commit());
    GOOD(two->Put("k", "w"));
    GOOD(two->Commit());
}

struct Case {
    const char *name;
    void (*run)(Kind);
    /// Whether it needs ranges, or what only managers of ranges have.
    bool has_ranges;
};

#define POINTS(name) {#name, name, false}
#define RANGES(name) {#name, name, true}
const Case cases[] = {
    POINTS(again_by_the_same), POINTS(conflicts), POINTS(many_share), POINTS(upgrade),
    POINTS(writes_outside_of_transactions), POINTS(undo), POINTS(savepoints), POINTS(snapshots),
    RANGES(range_basics), RANGES(range_over_points), RANGES(range_over_a_share_of_another),
    RANGES(write_in_own_range), RANGES(snapshot_before_a_range), RANGES(savepoint_with_ranges),
    RANGES(savepoint_with_an_upgrade_within_a_range), RANGES(prefixes),
    RANGES(readers_of_one_range), RANGES(part_of_a_share_becomes_exclusive), RANGES(reversed_range),
    POINTS(timeouts), POINTS(who_waits_gets_it), POINTS(who_is_waited_for), RANGES(waits_are_counted),
    POINTS(all_who_wait_get_it), POINTS(cancelled),
    POINTS(cancelled_without_locks), POINTS(cancelled_second_upgrade), RANGES(one_limit_of_time_for_a_range),
    POINTS(deadlock_of_points), RANGES(deadlock_of_ranges), POINTS(deadlock_of_five), POINTS(deadlock_of_upgrades),
    RANGES(deadlock_of_range_upgrades), POINTS(no_ring_of_one), POINTS(deadlock_through_a_reader),
    POINTS(deadlock_deeper_than_asked), POINTS(deadlock_buffer),
    POINTS(expired_is_robbed), POINTS(expires_while_another_waits), POINTS(not_yet_expired),
    RANGES(expired_range_is_robbed), RANGES(comes_later_and_expires), POINTS(expired_is_robbed_as_it_waits),
    POINTS(column_families), POINTS(reverse_points), RANGES(reverse_ranges), POINTS(case_blind), POINTS(timestamps),
    RANGES(throwing_comparator), RANGES(last_bytes),
    POINTS(lock_status), RANGES(range_status), RANGES(status_of_many), POINTS(lock_limit),
    RANGES(lock_limit_with_ranges), RANGES(memory_limit), POINTS(large_transaction),
    POINTS(goes_from_thread_to_thread), POINTS(closed_and_opened), POINTS(prepared_and_recovered),
    POINTS(write_prepared),
};

/// Runs a case in a child, and says how it ended; nothing if it passes.
std::string Outcome(const Case &each, Kind kind) {
    std::fflush(nullptr);
    int texts[2];
    if (pipe(texts) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        alarm(kind == Kind::Spanlock ? 60 : 5);
        close(texts[0]);
        int status = 0;
        try {
            each.run(kind);
        } catch (const std::exception &failure) {
            status = 1;
            if (write(texts[1], failure.what(), std::strlen(failure.what())) < 0) status = 2;
        }
        close(texts[1]);
        std::exit(status);
    }
    close(texts[1]);
    std::string text;
    char part[512];
    for (ssize_t size; (size = read(texts[0], part, sizeof part)) > 0;) text.append(part, size);
    close(texts[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        return signal == SIGALRM ? "it hangs" : "the process dies: " + std::string(strsignal(signal));
    }
    if (WEXITSTATUS(status) != 0 && text.empty()) return "it ends with " + std::to_string(WEXITSTATUS(status));
    return text;
}

} // namespace

int main(int argc, char **argv) {
    const std::string manager = argc > 1 ? argv[1] : "spanlock";
    const Kind kind = KindOf(manager);
    const std::set<std::string> chosen(argv + std::min(argc, 2), argv + argc);
    int failed = 0, passed = 0, skipped = 0;
    for (const Case &each : cases) {
        if (!chosen.empty() && chosen.count(each.name) == 0) continue;
        if (each.has_ranges && kind == Kind::Points) {
            ++skipped;
            continue;
        }
        const std::string outcome = Outcome(each, kind);
        if (outcome.empty()) {
            ++passed;
            continue;
        }
        ++failed;
        std::printf("%s: FAILS %s: %s\n", manager.c_str(), each.name, outcome.c_str());
    }
    std::printf("%s: %d cases pass, %d fail, %d need ranges\n", manager.c_str(), passed, failed, skipped);
    return kind == Kind::Spanlock && (failed > 0 || passed == 0) ? 1 : 0;
}
