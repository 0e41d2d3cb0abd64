// A column family's lock, and how ends of ranges compare in it.

#pragma once

#include <rocksdb/comparator.h>
#include <rocksdb/types.h>
#include <rocksdb/utilities/transaction_db.h>
#include <spanlock.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace spanlock_rocksdb {

using rocksdb::ColumnFamilyId;
using rocksdb::Slice;

/// What lies between keys of the lock: just before one, or just behind it. It points to the key.
struct End {
    Slice key;
    bool is_behind = false;
};

/// The range from one end to another one. It points to their keys.
struct Range {
    End low, high;

    /// Whether it is known to be one key.
    bool IsKey() const { return low.key.data() == high.key.data() && low.key.size() == high.key.size(); }
    spanlock_key_range Raw() const;
};

/// An end with its key.
struct OwnEnd {
    std::string key;
    bool is_behind = false;

    OwnEnd() = default;
    explicit OwnEnd(const End &end) : key(end.key.data(), end.key.size()), is_behind(end.is_behind) {}
    /// The key is written over the last one.
    OwnEnd &operator=(const End &end) {
        key.assign(end.key.data(), end.key.size());
        is_behind = end.is_behind;
        return *this;
    }
    operator End() const & { return {key, is_behind}; }
    operator End() const && = delete;
};

/// A range with its keys.
struct OwnRange {
    OwnEnd low, high;

    operator Range() const & { return {low, high}; }
    operator Range() const && = delete;
};

/// Where keys of the lock are written for a request, unless they are those of the program.
struct Texts {
    std::string low, high;
};

/// Somebody who holds a range.
struct Holder {
    std::uint32_t owner;
    bool is_exclusive;
    OwnRange range;
};

class Family {
  public:
    /// Not positive: there may be any number of locks.
    Family(ColumnFamilyId id, const rocksdb::Comparator *comparator, std::int64_t most_locks);
    Family(const Family &) = delete;
    Family &operator=(const Family &) = delete;
    ~Family();

    /// The order of two ends.
    int Compare(const End &one, const End &other) const {
        const int order = is_bytewise_ ? one.key.compare(other.key) : CompareKeys(one.key, other.key);
        return order != 0 ? order : int(one.is_behind) - int(other.is_behind);
    }

    /// One key, which may point into the text.
    Range PointOf(const Slice &key, std::string *text) const {
        const Slice whole = Named(key, ItsKey, text);
        return {{whole, false}, {whole, true}};
    }

    /// The range between two endpoints, both included, which may point into the texts. False if it is reversed.
    ///
    /// An endpoint without a suffix is a key, as the comparator has it. Where the other one has a suffix, or the range
    /// would be reversed, a start without a suffix lies before all keys that begin so: in an order in which longer keys
    /// come first, that is not the key itself.
    bool RangeOf(const rocksdb::Endpoint &start, const rocksdb::Endpoint &end, Texts *texts, Range *range) const;

    /// An endpoint, as RocksDB shows it.
    rocksdb::EndpointWithString Shown(const End &end) const;

    /// Who holds some of a range in the way of a request of that owner, which may be null.
    std::vector<Holder> Blockers(const Range &range, bool is_exclusive, spanlock_owner *owner) const;

    /// All who hold something, in the order of their starts.
    std::vector<Holder> All() const;

    const ColumnFamilyId id;
    spanlock_key_lock *lock = nullptr;

    /// Counts locks: keys and ranges that transactions have asked for. They are only counted where there is a limit.
    void Count(std::int64_t more) {
        if (most_locks_ > 0) count_.fetch_add(more, std::memory_order_relaxed);
    }
    bool IsFull() const { return most_locks_ > 0 && count_.load(std::memory_order_relaxed) >= most_locks_; }

  private:
    /// A key of the lock: a key of the column family, or what lies before or behind all keys that begin so. In the
    /// order of bytes the lock compares them itself:
    ///
    ///     the key, or before all that begin so    its bytes, with a zero behind each of 255
    ///     behind all that begin so                the same, and two bytes of 255
    ///
    /// In other orders it asks the comparator, and a key is its bytes, and one of these.
    enum Suffix : char { BeforePrefix = 0, ItsKey = 1, BehindPrefix = 2 };
    Slice Named(const Slice &key, Suffix suffix, std::string *text) const;

    // No exception may pass through the library for C, nor leave an order half made: it ends the process.
    static int CompareRaw(void *family, const void *one, std::size_t one_size, const void *other,
                          std::size_t other_size) noexcept;
    int CompareKeys(const Slice &one, const Slice &other) const noexcept;
    // This one ends with a call of the comparator, which may replace its frame: its caller stops the exception.
    int CompareUser(const Slice &one, const Slice &other) const;
    std::vector<Holder> List(const spanlock_key_range &range, bool is_exclusive, spanlock_owner *owner) const;

    const std::int64_t most_locks_;
    std::atomic<std::int64_t> count_{0};
    const rocksdb::Comparator *const comparator_;
    const bool is_bytewise_;
};

} // namespace spanlock_rocksdb
