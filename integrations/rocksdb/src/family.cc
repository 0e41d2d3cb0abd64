#include "family.h"

#include "answers.h"

#include <algorithm>
#include <cstring>

namespace spanlock_rocksdb {

using rocksdb::Endpoint;

namespace {

constexpr char last_byte = '\xff';
constexpr char behind_prefix[] = "\xff\xff";

} // namespace

Slice Family::Named(const Slice &key, Suffix suffix, std::string *text) const {
    if (!is_bytewise_) {
        text->reserve(key.size() + 1);
        text->assign(key.data(), key.size());
        text->push_back(suffix);
        return *text;
    }
    const bool is_as_it_is = key.empty() || std::memchr(key.data(), last_byte, key.size()) == nullptr;
    if (is_as_it_is && suffix != BehindPrefix) return key;
    text->clear();
    for (std::size_t at = 0; at < key.size(); ++at) {
        text->push_back(key[at]);
        if (key[at] == last_byte) text->push_back('\0');
    }
    if (suffix == BehindPrefix) text->append(behind_prefix);
    return *text;
}

rocksdb::EndpointWithString Family::Shown(const End &end) const {
    if (!is_bytewise_) {
        const std::size_t size = end.key.size();
        if (size == 0) return {"", end.is_behind}; // Everything: nobody asks for that.
        return {std::string(end.key.data(), size - 1), end.key[size - 1] == BehindPrefix};
    }
    Slice rest = end.key;
    const bool is_behind_prefix = rest.ends_with(behind_prefix);
    if (is_behind_prefix) rest.remove_suffix(2);
    std::string key;
    for (std::size_t at = 0; at < rest.size(); ++at) {
        key.push_back(rest[at]);
        if (rest[at] == last_byte) ++at; // The zero.
    }
    return {key, is_behind_prefix};
}

spanlock_key_range Range::Raw() const {
    const std::uint32_t start = low.is_behind ? SPANLOCK_EXCLUDED : SPANLOCK_INCLUDED;
    const std::uint32_t end = high.is_behind ? SPANLOCK_INCLUDED : SPANLOCK_EXCLUDED;
    return {low.key.data(), low.key.size(), high.key.data(), high.key.size(), start, end};
}

Family::Family(ColumnFamilyId family, const rocksdb::Comparator *comparator, std::int64_t most_locks)
    : id(family), most_locks_(most_locks), comparator_(comparator),
      is_bytewise_(comparator == rocksdb::BytewiseComparator()) {
    spanlock_key_lock_options options = SPANLOCK_KEY_LOCK_OPTIONS;
    if (!is_bytewise_) options.compare = CompareRaw;
    options.argument = this;
    Expect(spanlock_key_lock_create(&lock, &options), "create a lock");
}

Family::~Family() { Expect(spanlock_key_lock_destroy(lock), "destroy a lock that is not in use"); }

int Family::CompareRaw(void *family, const void *one, std::size_t one_size, const void *other,
                       std::size_t other_size) noexcept {
    const Slice left(static_cast<const char *>(one), one_size);
    const Slice right(static_cast<const char *>(other), other_size);
    return static_cast<const Family *>(family)->CompareKeys(left, right);
}

int Family::CompareUser(const Slice &one, const Slice &other) const {
    // Keys are locked without their timestamps.
    return comparator_->CompareWithoutTimestamp(one, false, other, false);
}

int Family::CompareKeys(const Slice &one, const Slice &other) const noexcept {
    const char suffix = one[one.size() - 1], other_suffix = other[other.size() - 1];
    const Slice left(one.data(), one.size() - 1), right(other.data(), other.size() - 1);
    if (suffix == ItsKey && other_suffix == ItsKey) return CompareUser(left, right);
    const std::size_t common = std::min(left.size(), right.size());
    const int order = CompareUser(Slice(left.data(), common), Slice(right.data(), common));
    if (order != 0) return order;
    if (left.size() == right.size()) return suffix - other_suffix;
    // One begins as the other one is. All that begin so are together in the order.
    if (left.size() < right.size()) {
        if (suffix != ItsKey) return suffix == BeforePrefix ? -1 : 1;
    } else if (other_suffix != ItsKey) {
        return other_suffix == BeforePrefix ? 1 : -1;
    }
    return CompareUser(left, right);
}

bool Family::RangeOf(const Endpoint &start, const Endpoint &end, Texts *texts, Range *range) const {
    const Suffix of_key = end.inf_suffix ? BeforePrefix : ItsKey;
    range->low = {Named(start.slice, start.inf_suffix ? BehindPrefix : of_key, &texts->low), false};
    range->high = {Named(end.slice, end.inf_suffix ? BehindPrefix : ItsKey, &texts->high), true};
    if (Compare(range->low, range->high) < 0) return true;
    if (start.inf_suffix) return false;
    range->low.key = Named(start.slice, BeforePrefix, &texts->low);
    return Compare(range->low, range->high) < 0;
}

std::vector<Holder> Family::List(const spanlock_key_range &range, bool is_exclusive, spanlock_owner *owner) const {
    std::vector<Holder> holders;
    const auto note = [](void *argument, const spanlock_key_holder *holder) noexcept {
        const spanlock_key_range &held = holder->range;
        const Slice low(static_cast<const char *>(held.start), held.start_size);
        const Slice high(static_cast<const char *>(held.end), held.end_size);
        const End start{low, held.start_kind == SPANLOCK_EXCLUDED}, end{high, held.end_kind == SPANLOCK_INCLUDED};
        const bool is_exclusive = holder->mode == SPANLOCK_EXCLUSIVE;
        auto *all = static_cast<std::vector<Holder> *>(argument);
        all->push_back({holder->owner, is_exclusive, {OwnEnd(start), OwnEnd(end)}});
    };
    const std::uint32_t mode = is_exclusive ? SPANLOCK_EXCLUSIVE : SPANLOCK_SHARED;
    Expect(spanlock_key_lock_blockers(lock, &range, mode, owner, note, &holders), "list who holds keys");
    return holders;
}

std::vector<Holder> Family::Blockers(const Range &range, bool is_exclusive, spanlock_owner *owner) const {
    return List(range.Raw(), is_exclusive, owner);
}

std::vector<Holder> Family::All() const {
    const spanlock_key_range everything = {nullptr, 0, nullptr, 0, SPANLOCK_UNBOUNDED, SPANLOCK_UNBOUNDED};
    return List(everything, true, nullptr);
}

} // namespace spanlock_rocksdb
