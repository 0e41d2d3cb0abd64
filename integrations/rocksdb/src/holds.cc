#include "holds.h"

#include "answers.h"

#include <algorithm>
#include <cerrno>

namespace spanlock_rocksdb {

namespace {

/// About what a piece takes: here, and in libspanlock.
std::size_t BytesOf(const End &low, const Piece &piece) {
    const std::size_t keys = piece.is_key ? low.key.size() : low.key.size() + piece.high.key.size();
    return sizeof(Piece) + sizeof(OwnEnd) + 448 + 2 * keys;
}

/// For owners that have held more, whose tables are large.
constexpr std::size_t many = 1024;

/// How many pieces and notes keep their memory, and for keys of how many bytes.
constexpr std::size_t most_kept = 16, largest_kept = 256;

} // namespace

bool Piece::NeedsExclusive() const {
    const auto is_exclusive = [](const auto &point) { return point.second; };
    return alone > 0 || named == NamedAlone || std::any_of(others.begin(), others.end(), is_exclusive);
}

bool Piece::IsNamed(const End &low, const Slice &name) const {
    if (name == low.key) return named != NotNamed;
    const auto is_it = [&](const auto &point) { return Slice(point.first) == name; };
    return std::any_of(others.begin(), others.end(), is_it);
}

void Piece::Name(const End &low, const Slice &name, bool exclusively) {
    if (name == low.key) {
        named = exclusively ? NamedAlone : NamedShared;
        return;
    }
    Unname(low, name);
    others.emplace_back(name.ToString(), exclusively);
}

void Piece::Unname(const End &low, const Slice &name) {
    if (name == low.key) {
        named = NotNamed;
        return;
    }
    const auto is_it = [&](const auto &point) { return Slice(point.first) == name; };
    others.erase(std::remove_if(others.begin(), others.end(), is_it), others.end());
}

Holds::Pieces::iterator Holds::FirstBehind(const End &end) {
    auto piece = pieces.upper_bound(end);
    if (piece != pieces.begin()) {
        const auto before = std::prev(piece);
        if (family->Compare(before->second.High(before->first), end) > 0) return before;
    }
    return piece;
}

bool Holds::IsCovered(const Range &range, bool exclusively) {
    End reached = range.low;
    for (auto piece = FirstBehind(range.low); piece != pieces.end(); ++piece) {
        if (family->Compare(piece->first, reached) > 0 || !piece->second.IsCovered(exclusively)) return false;
        reached = piece->second.High(piece->first);
        if (family->Compare(reached, range.high) >= 0) return true;
    }
    return false;
}

Holds::Pieces::iterator Holds::FindPoint(const Range &point) {
    const auto piece = pieces.find(point.low);
    if (piece == pieces.end() || family->Compare(piece->second.High(piece->first), point.high) != 0)
        return pieces.end();
    return piece;
}

void Notes::Add(ColumnFamilyId family, const Range &range, bool is_exclusive, std::uint64_t trackers) {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == all_.size()) all_.emplace_back();
    RangeNote &note = all_[count];
    note.family = family;
    note.range.low = range.low;
    note.range.high = range.high;
    note.is_exclusive = is_exclusive;
    note.trackers = trackers;
    count_.store(count + 1, std::memory_order_relaxed);
}

void Notes::Remove(RangeNote *note) {
    std::rotate(note, note + 1, end());
    count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

void Notes::Clear() {
    count_.store(0, std::memory_order_relaxed);
    const auto is_large = [](const RangeNote &note) {
        return note.range.low.key.capacity() + note.range.high.key.capacity() > 2 * largest_kept;
    };
    if (all_.size() > most_kept) all_.resize(most_kept);
    all_.erase(std::remove_if(all_.begin(), all_.end(), is_large), all_.end());
}

State::State() { Renew(); }

void State::Renew() {
    if (owner != nullptr) Expect(spanlock_owner_destroy(owner), "destroy an owner");
    Expect(spanlock_owner_create(&owner, nullptr), "create an owner");
    Expect(spanlock_owner_number(owner, &number), "ask for an owner's number");
}

State::~State() {
    ReleaseAll();
    Expect(spanlock_owner_destroy(owner), "destroy an owner");
}

Holds *State::Find(ColumnFamilyId id) {
    for (Holds &holds : held)
        if (holds.family->id == id) return &holds;
    return nullptr;
}

void State::Count(std::size_t more, std::size_t less) {
    const auto before = bytes.load(std::memory_order_relaxed);
    bytes.store(before + more - less, std::memory_order_relaxed);
}

Holds::Pieces::iterator State::Insert(Holds &holds, Holds::Pieces::iterator next, const Range &range,
                                      const spanlock_token &token, bool is_exclusive, rocksdb::SequenceNumber since) {
    Holds::Pieces::iterator at;
    if (spares_.empty()) {
        at = holds.pieces.try_emplace(next, OwnEnd(range.low));
    } else {
        spares_.back().key() = range.low;
        at = holds.pieces.insert(next, std::move(spares_.back()));
        spares_.pop_back();
    }
    Piece &piece = at->second;
    piece.is_key = range.IsKey();
    if (!piece.is_key) piece.high = range.high;
    piece.is_exclusive = is_exclusive;
    piece.token = token;
    piece.shared = piece.alone = 0;
    piece.named = Piece::NotNamed;
    piece.others.clear();
    piece.since = since;
    Count(BytesOf(range.low, piece), 0);
    return at;
}

void State::CutAt(Holds &holds, const End &end) {
    const auto piece = holds.FirstBehind(end);
    if (!holds.BeginsBefore(piece, end)) return;
    const std::uint32_t kind = end.is_behind ? SPANLOCK_EXCLUDED : SPANLOCK_INCLUDED;
    const spanlock_key_range behind = {end.key.data(), end.key.size(), nullptr, 0, kind, SPANLOCK_UNBOUNDED};
    Piece rest = piece->second;
    const std::size_t before = BytesOf(piece->first, piece->second);
    Expect(spanlock_key_lock_split(holds.family->lock, owner, &piece->second.token, &behind, &rest.token),
           "split a range");
    piece->second.high = end;
    Count(BytesOf(piece->first, piece->second) + BytesOf(end, rest), before);
    holds.pieces.emplace(OwnEnd(end), std::move(rest));
}

Holds::Pieces::iterator State::Drop(Holds &holds, Holds::Pieces::iterator piece) {
    const auto next = std::next(piece);
    const int answer = spanlock_key_lock_release(holds.family->lock, owner, &piece->second.token);
    if (answer == EBUSY) return next; // The transaction's own thread is about to convert it.
    Expect(answer, "release a range");
    holds.family->Count(-static_cast<std::int64_t>(piece->second.Names()));
    Count(0, BytesOf(piece->first, piece->second));
    const std::size_t capacity = piece->first.key.capacity() + piece->second.high.key.capacity();
    if (spares_.size() < most_kept && capacity <= 2 * largest_kept)
        spares_.push_back(holds.pieces.extract(piece));
    else
        holds.pieces.erase(piece);
    return next;
}

void State::Relax(Holds &holds, Holds::Pieces::iterator piece) {
    if (!piece->second.IsUsed()) {
        Drop(holds, piece);
    } else if (piece->second.is_exclusive && !piece->second.NeedsExclusive()) {
        const spanlock_key_range whole = RangeOfPiece(piece).Raw();
        const int answer =
            spanlock_key_lock_try_convert(holds.family->lock, owner, &piece->second.token, &whole, SPANLOCK_SHARED);
        Expect(answer, "share a range");
        piece->second.is_exclusive = false;
    }
}

void State::ReleasePoint(Holds &holds, const Slice &key) {
    std::string text;
    const Range point = holds.family->PointOf(key, &text);
    const auto piece = holds.FindPoint(point);
    if (piece == holds.pieces.end()) return; // A range holds it, or it was taken from the transaction.
    if (piece->second.IsNamed(piece->first, point.low.key)) holds.family->Count(-1);
    piece->second.Unname(piece->first, point.low.key);
    Relax(holds, piece);
}

void State::ReleaseRange(Holds &holds, const Range &range, bool is_exclusive) {
    holds.family->Count(-1);
    auto piece = holds.FirstBehind(range.low);
    while (holds.BeginsBefore(piece, range.high)) {
        const auto next = std::next(piece);
        auto &count = is_exclusive ? piece->second.alone : piece->second.shared;
        if (count > 0) --count; // Else it was taken from the transaction, and locked again.
        Relax(holds, piece);
        piece = next;
    }
}

void State::EndWaits() {
    is_worn = true;
    Expect(spanlock_owner_cancel(owner), "cancel an owner");
}

void State::ReleaseAll() {
    for (Holds &holds : held) {
        is_worn |= holds.pieces.size() > many;
        for (auto piece = holds.pieces.begin(); piece != holds.pieces.end();) piece = Drop(holds, piece);
    }
    for (const RangeNote &note : ranges)
        if (const Holds *holds = Find(note.family)) holds->family->Count(-1);
    ranges.Clear();
}

} // namespace spanlock_rocksdb
