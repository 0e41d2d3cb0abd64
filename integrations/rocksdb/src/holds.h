// What a transaction holds: pieces that do not overlap, each with how often and how it was asked for.
//
//     asked:    [ a ------ range, shared ------ z ]
//                       k  point, exclusive
//     pieces:   [ a - shared - ) k ( - shared - z ]
//                                alone
//
// A piece is one token of libspanlock. A request cuts the pieces at its ends, so it consists of whole pieces; they are
// never joined again. A range within ranges that the transaction holds as strongly is not noted: savepoints end in the
// reverse order of their beginnings, so those ranges are released last.
//
// Pieces and notes of which a transaction has few keep their memory for later ones.

#pragma once

#include "family.h"

#include <rocksdb/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace rocksdb {
class PessimisticTransaction;
}

namespace spanlock_rocksdb {

/// What is held by one token, from an end on.
struct Piece {
    /// Of no meaning where it is one key.
    OwnEnd high;
    bool is_key;
    bool is_exclusive;
    spanlock_token token;
    /// How many ranges cover it.
    std::uint32_t shared = 0, alone = 0;
    /// How the key is locked that is at its low end.
    enum Named : std::uint8_t { NotNamed, NamedShared, NamedAlone } named = NotNamed;
    /// By what other names it is locked, with whether exclusively, where the comparator takes keys for equal that
    /// differ.
    std::vector<std::pair<std::string, bool>> others;
    /// No other transaction has changed its keys since this sequence number.
    rocksdb::SequenceNumber since;

    /// Where it ends, given where it begins.
    End High(const End &low) const { return is_key ? End{low.key, true} : End(high); }
    bool IsUsed() const { return shared + alone > 0 || Names() > 0; }
    bool NeedsExclusive() const;
    /// By how many names it is locked.
    std::size_t Names() const { return (named == NotNamed ? 0 : 1) + others.size(); }
    bool IsNamed(const End &low, const Slice &name) const;
    /// Locks it by a name.
    void Name(const End &low, const Slice &name, bool exclusively);
    /// Not any more.
    void Unname(const End &low, const Slice &name);
    /// Whether ranges hold it as strongly.
    bool IsCovered(bool exclusively) const { return alone > 0 || (!exclusively && shared > 0); }
};

/// What a transaction holds of one column family.
class Holds {
  public:
    struct Before {
        using is_transparent = void;
        const Family *family;
        bool operator()(const End &one, const End &other) const { return family->Compare(one, other) < 0; }
    };
    using Pieces = std::map<OwnEnd, Piece, Before>;

    explicit Holds(std::shared_ptr<Family> family) : family(std::move(family)), pieces(Before{this->family.get()}) {}

    /// The first piece that ends behind an end.
    Pieces::iterator FirstBehind(const End &end);

    /// Whether a piece begins before an end.
    bool BeginsBefore(Pieces::iterator piece, const End &end) const {
        return piece != pieces.end() && family->Compare(piece->first, end) < 0;
    }

    /// Whether the range is held by ranges as strongly.
    bool IsCovered(const Range &range, bool exclusively);

    /// The piece that is this key, or the end.
    Pieces::iterator FindPoint(const Range &point);

    std::shared_ptr<Family> family;
    Pieces pieces;
};

/// A range that was asked for, to be released with its savepoint.
struct RangeNote {
    ColumnFamilyId family;
    OwnRange range;
    bool is_exclusive;
    /// How many trackers there had been, so that a savepoint knows whether it is older.
    std::uint64_t trackers;
};

/// The latest last.
class Notes {
  public:
    /// Any thread may ask.
    bool IsEmpty() const { return count_.load(std::memory_order_relaxed) == 0; }
    RangeNote *begin() { return all_.data(); }
    RangeNote *end() { return all_.data() + count_.load(std::memory_order_relaxed); }
    RangeNote &Last() { return end()[-1]; }
    void Add(ColumnFamilyId family, const Range &range, bool is_exclusive, std::uint64_t trackers);
    void Remove(RangeNote *note);
    void Clear();

  private:
    /// Those behind the count are over.
    std::vector<RangeNote> all_;
    std::atomic<std::size_t> count_{0};
};

/// A transaction, as the manager knows it. States are used again for other transactions, and live as long as the
/// manager.
struct State {
    State();
    ~State();
    State(const State &) = delete;
    State &operator=(const State &) = delete;

    /// Another owner, when nothing is held.
    void Renew();

    static Range RangeOfPiece(Holds::Pieces::iterator piece) {
        return {piece->first, piece->second.High(piece->first)};
    }

    /// Adds what was acquired, before that piece. Nobody has asked for it yet.
    Holds::Pieces::iterator Insert(Holds &holds, Holds::Pieces::iterator next, const Range &range,
                                   const spanlock_token &token, bool is_exclusive, rocksdb::SequenceNumber since);

    /// Divides the piece around an end, if there is one.
    void CutAt(Holds &holds, const End &end);

    /// Releases a piece that nobody asked for any more, or holds it less strongly if that suffices.
    void Relax(Holds &holds, Holds::Pieces::iterator piece);

    void ReleasePoint(Holds &holds, const Slice &key);
    void ReleaseRange(Holds &holds, const Range &range, bool is_exclusive);

    /// Ends the transaction's waits, until another one has the State.
    void EndWaits();

    /// Releases everything, but for what the transaction's own thread is about to convert.
    void ReleaseAll();

    Holds *Find(ColumnFamilyId id);

    /// Protects all that follows. Nobody waits for a lock while it is held.
    std::mutex mutex;
    spanlock_owner *owner = nullptr;
    std::uint32_t number = 0;
    rocksdb::PessimisticTransaction *transaction = nullptr;
    std::uint64_t expires_at = 0;
    /// The owner is cancelled, or has held so much that its table is large: the next transaction gets another one.
    bool is_worn = false;
    /// Another transaction has taken the locks, since this one has expired. It gets no more.
    bool is_robbed = false;
    /// The program has cancelled the transaction.
    bool is_cancelled = false;
    std::uint64_t families_seen = 0;
    std::vector<Holds> held;
    Notes ranges;

    /// Read by others.
    std::atomic<std::uint64_t> id{0};
    std::atomic<std::size_t> bytes{0};
    /// Whether something is to be undone when the transaction ends.
    std::atomic<bool> is_in_use{false};

  private:
    Holds::Pieces::iterator Drop(Holds &holds, Holds::Pieces::iterator piece);
    void Count(std::size_t more, std::size_t less);

    /// Nodes of the map, to be used again.
    std::vector<Holds::Pieces::node_type> spares_;
};

} // namespace spanlock_rocksdb
