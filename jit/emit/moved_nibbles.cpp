// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/moved_nibbles.hpp"

#include <algorithm>
#include <cassert>

#include "ir/types/storage.hpp"
#include "jit/emit/code_map.hpp"

namespace castor::jit {

namespace {

using Xbyak::Ymm;
using Vectors = std::vector<Ymm>;
using Sixteen = std::array<uint8_t, 16>;

constexpr int vector_bytes = 32;
constexpr int half_bytes = vector_bytes / 2;  ///< shuffles stay in halves
constexpr int group = static_cast<int>(storage_group);
constexpr int max_bits = 4;
constexpr int block_elements = vector_bytes * group;
// ymm6 to ymm15; the others are left to the lane program.
constexpr int first_register = 6;
constexpr int register_count = 10;

/// A byte order by a rule: the source of each byte.
template <class SourceOf>
constexpr Sixteen order_of(const SourceOf& source_of) {
  Sixteen order = {};
  for (int i = 0; i < half_bytes; ++i) {
    order[static_cast<size_t>(i)] = static_cast<uint8_t>(source_of(i));
  }
  return order;
}

/// The half of a group's byte that has all of an element's bits, counted in half bytes of the
/// group; -1: they are in several.
int half_of_element(ElementType type, int element) {
  const int64_t half = storage_bit(type, element, 0) / 4;
  for (int bit = 1; bit < bits_of(type); ++bit) {
    if (storage_bit(type, element, bit) / 4 != half) return -1;
  }
  return static_cast<int>(half);
}

}  // namespace

std::unique_ptr<MovedNibbles> MovedNibbles::of(ElementType from, ElementType to,
                                               const std::vector<uint8_t>& map) {
  if (bits_of(from) > max_bits || bits_of(to) > max_bits) return nullptr;
  std::unique_ptr<MovedNibbles> moved(new MovedNibbles(from, to));
  return moved->find_terms(from, to, map) ? std::move(moved) : nullptr;
}

bool MovedNibbles::find_terms(ElementType from, ElementType to, const std::vector<uint8_t>& map) {
  // What each half of the source's group gives to each byte of the result's.
  std::vector<std::vector<Sixteen>> given(static_cast<size_t>(2 * from_bits_),
                                          std::vector<Sixteen>(static_cast<size_t>(to_bits_)));
  const auto give = [&](int half, int digit, int element, uint8_t result) {
    for (int bit = 0; bit < to_bits_; ++bit) {
      if ((result >> bit & 1) == 0) continue;
      const int64_t sink = storage_bit(to, element, bit);
      given[static_cast<size_t>(half)][static_cast<size_t>(sink / 8)][static_cast<size_t>(digit)] ^=
          static_cast<uint8_t>(1 << sink % 8);
    }
  };
  for (int element = 0; element < group; ++element) {
    const int half = half_of_element(from, element);
    if (half < 0 && !moves_bits(map)) return false;
    for (int digit = 0; digit < 16; ++digit) {
      size_t code = 0;
      for (int bit = 0; bit < from_bits_; ++bit) {
        const int64_t source = storage_bit(from, element, bit);
        if ((digit >> source % 4 & 1) == 0) continue;
        if (half >= 0) code |= size_t{1} << bit;
        if (half < 0) give(static_cast<int>(source / 4), digit, element, map[size_t{1} << bit]);
      }
      if (half >= 0) give(half, digit, element, map[code]);
    }
  }
  terms_.resize(static_cast<size_t>(to_bits_));
  for (int half = 0; half < 2 * from_bits_; ++half) {
    for (size_t byte = 0; byte < terms_.size(); ++byte) {
      const Sixteen& table = given[static_cast<size_t>(half)][byte];
      if (table == Sixteen{}) continue;
      terms_[byte].push_back({half / 2, half % 2 != 0, table});
    }
  }
  keeps_order_ = find_keeps_order();
  return true;
}

bool MovedNibbles::find_keeps_order() const {
  if (from_bits_ != to_bits_) return false;
  if (std::ranges::any_of(terms_[0], [](const Term& term) { return term.source != 0; })) {
    return false;
  }
  for (size_t byte = 0; byte < terms_.size(); ++byte) {
    std::vector<Term> first = terms_[0];
    for (Term& term : first) term.source += static_cast<int>(byte);
    if (terms_[byte] != first) return false;
  }
  return true;
}

/// An iteration reads or writes at least four vectors.
int MovedNibbles::blocks() const { return std::max(1, 4 / std::max(from_bits_, to_bits_)); }

int MovedNibbles::elements() const { return blocks() * block_elements; }

uint32_t MovedNibbles::taken_vectors() const {
  return ((uint32_t{1} << register_count) - 1) << first_register;
}

/// Emits blocks of 32 groups.
class MovedNibbles::Block {
 public:
  Block(const MovedNibbles& moved, Assembler& code, Stores stores)
      : moved_(moved), code_(code), stores_(stores) {
    for (int i = 0; i < register_count; ++i) free_.push_back(first_register + i);
  }

  void emit(const Xbyak::RegExp& source, const Xbyak::RegExp& sink) {
    if (moved_.keeps_order_) return emit_in_order(source, sink);
    Vectors bytes = emit_loads(source);
    emit_bring_together(bytes);
    Vectors results = emit_look_up(bytes);
    emit_put_between(results);
    emit_stores(sink, results);
  }

 private:
  void emit_in_order(const Xbyak::RegExp& source, const Xbyak::RegExp& sink);
  Vectors emit_loads(const Xbyak::RegExp& source);
  void emit_bring_together(Vectors& bytes);
  Vectors emit_look_up(Vectors& bytes);
  void emit_put_between(Vectors& results);
  void emit_stores(const Xbyak::RegExp& sink, Vectors& results);
  void emit_look_up(const Ymm& byte, int number, Vectors& results, std::vector<bool>& is_begun);
  void emit_thirds(Vectors& vectors, bool come_together);
  void emit_transpose_quarters(Vectors& vectors);
  void emit_store(const Xbyak::RegExp& sink, int number, const Ymm& from);
  /// Both halves of a register have the same bytes.
  Xbyak::Address in_halves(const Sixteen& bytes);

  Ymm take() {
    assert(!free_.empty());
    const Ymm taken(free_.back());
    free_.pop_back();
    return taken;
  }
  void give_back(const Ymm& vector) { free_.push_back(vector.getIdx()); }
  void give_back(const Vectors& vectors) {
    for (const Ymm& vector : vectors) give_back(vector);
  }

  const MovedNibbles& moved_;
  Assembler& code_;
  const Stores stores_;
  std::vector<int> free_;
};

void MovedNibbles::emit(Stores stores, LaneEmitter& emitter, const Frame& frame,
                        NestLoops& loops) const {
  Assembler& code = emitter.code();
  loops.emit_main_loop(elements(), [&] {
    const Section moved = code.section(CodeSection::moved_bits);
    emit_byte_offset(code, gpr::counter, from_bits_);
    emit_byte_offset(code, gpr::scratch, to_bits_);
    for (int i = 0; i < blocks(); ++i) {
      Block(*this, code, stores)
          .emit(frame.emit_pointer(0) + gpr::counter + i * vector_bytes * from_bits_,
                frame.emit_pointer(1) + gpr::scratch + i * vector_bytes * to_bits_);
    }
  });
}

Xbyak::Address MovedNibbles::Block::in_halves(const Sixteen& bytes) {
  std::array<uint8_t, vector_bytes> halves = {};
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = bytes[i % bytes.size()];
  return code_.constant(halves);
}

/// Each half of a register has 16 groups that follow each other.
Vectors MovedNibbles::Block::emit_loads(const Xbyak::RegExp& source) {
  Vectors bytes;
  for (int k = 0; k < moved_.from_bits_; ++k) {
    bytes.push_back(take());
    if (moved_.from_bits_ == 1) {
      code_.vmovups(bytes.back(), code_.ptr[source]);
      continue;
    }
    const int upper = half_bytes * moved_.from_bits_;
    code_.vmovups(Xbyak::Xmm(bytes.back().getIdx()), code_.ptr[source + half_bytes * k]);
    code_.vinserti128(bytes.back(), bytes.back(), code_.ptr[source + upper + half_bytes * k], 1);
  }
  return bytes;
}

/// Makes of vectors of consecutive bytes one vector for each byte of a group.
void MovedNibbles::Block::emit_bring_together(Vectors& bytes) {
  const int count = moved_.from_bits_;
  if (count == 1) return;
  if (count == 3) return emit_thirds(bytes, true);
  const int groups = half_bytes / count;
  const Xbyak::Address order =
      in_halves(order_of([&](int i) { return i % groups * count + i / groups; }));
  for (const Ymm& vector : bytes) code_.vpshufb(vector, vector, order);
  if (count == 4) return emit_transpose_quarters(bytes);
  const Ymm second = take();
  code_.vpunpckhqdq(second, bytes[0], bytes[1]);
  code_.vpunpcklqdq(bytes[0], bytes[0], bytes[1]);
  give_back(bytes[1]);
  bytes[1] = second;
}

/// Rows of four 32-bit lanes become columns, in each half.
void MovedNibbles::Block::emit_transpose_quarters(Vectors& vectors) {
  const Ymm a = take();
  const Ymm b = take();
  code_.vpunpckldq(a, vectors[0], vectors[1]);
  code_.vpunpckhdq(vectors[0], vectors[0], vectors[1]);
  code_.vpunpckldq(b, vectors[2], vectors[3]);
  code_.vpunpckhdq(vectors[2], vectors[2], vectors[3]);
  code_.vpunpckhqdq(vectors[1], a, b);
  code_.vpunpcklqdq(a, a, b);
  code_.vpunpckhqdq(vectors[3], vectors[0], vectors[2]);
  code_.vpunpcklqdq(b, vectors[0], vectors[2]);
  give_back({vectors[0], vectors[2]});
  vectors[0] = a;
  vectors[2] = b;
}

/// Three vectors of which byte p of number k is of kind (p + k) % 3, from or to one for each kind:
/// a kind has other positions in each, so one blend of all three has all of its bytes, and one
/// shuffle puts them in order.
void MovedNibbles::Block::emit_thirds(Vectors& vectors, bool come_together) {
  const auto emit_shuffle = [&](const Ymm& vector, int kind) {
    const Sixteen order = order_of([&](int i) {
      constexpr int third = 11;  // 3 * 11 = 1 modulo 16
      return come_together ? (3 * i + kind) % 16 : (i - kind + 16) * third % 16;
    });
    code_.vpshufb(vector, vector, in_halves(order));
  };
  const auto number = [](int k) { return static_cast<size_t>(k % 3); };
  std::array<Ymm, 2> masks = {take(), take()};
  for (int position = 1; position <= 2; ++position) {
    const Sixteen mask = order_of([&](int i) { return i % 3 == position ? 0xff : 0; });
    code_.vmovups(masks[static_cast<size_t>(position - 1)], in_halves(mask));
  }
  if (!come_together) {
    for (int kind = 0; kind < 3; ++kind) emit_shuffle(vectors[number(kind)], kind);
  }
  Vectors blended;
  for (int k = 0; k < 3; ++k) {
    const int at_1 = come_together ? k + 2 : k + 1;
    const int at_2 = come_together ? k + 1 : k + 2;
    blended.push_back(take());
    code_.vpblendvb(blended.back(), vectors[number(k)], vectors[number(at_1)], masks[0]);
    code_.vpblendvb(blended.back(), blended.back(), vectors[number(at_2)], masks[1]);
    if (come_together) emit_shuffle(blended.back(), k);
  }
  give_back(vectors);
  give_back({masks[0], masks[1]});
  vectors = blended;
}

/// Makes vectors of each byte of a result's group of those of each byte of the source's.
Vectors MovedNibbles::Block::emit_look_up(Vectors& bytes) {
  Vectors results;
  for (int byte = 0; byte < moved_.to_bits_; ++byte) results.push_back(take());
  std::vector<bool> is_begun(results.size(), false);
  for (size_t number = 0; number < bytes.size(); ++number) {
    emit_look_up(bytes[number], static_cast<int>(number), results, is_begun);
  }
  give_back(bytes);
  for (size_t byte = 0; byte < results.size(); ++byte) {
    if (!is_begun[byte]) code_.vpxor(results[byte], results[byte], results[byte]);
  }
  return results;
}

/// Adds what byte `number` of a group gives. Overwrites `byte`.
void MovedNibbles::Block::emit_look_up(const Ymm& byte, int number, Vectors& results,
                                       std::vector<bool>& is_begun) {
  const auto has_term = [&](bool is_upper) {
    return std::ranges::any_of(moved_.terms_, [&](const std::vector<Term>& terms) {
      return std::ranges::any_of(terms, [&](const Term& term) {
        return term.source == number && term.is_upper == is_upper;
      });
    });
  };
  const Ymm half = take();
  const Ymm given = take();
  const Xbyak::Address low = in_halves(order_of([](int) { return 0xf; }));
  for (const bool is_upper : {false, true}) {
    if (!has_term(is_upper)) continue;
    if (is_upper) code_.vpsrlw(byte, byte, 4);
    code_.vpand(half, byte, low);
    for (size_t to = 0; to < results.size(); ++to) {
      for (const Term& term : moved_.terms_[to]) {
        if (term.source != number || term.is_upper != is_upper) continue;
        const Ymm& looked_up = is_begun[to] ? given : results[to];
        code_.vmovups(looked_up, in_halves(term.table));
        code_.vpshufb(looked_up, looked_up, half);
        if (is_begun[to]) code_.vpxor(results[to], results[to], given);
        is_begun[to] = true;
      }
    }
  }
  give_back({half, given});
}

/// Makes vectors of consecutive bytes of each half's groups.
void MovedNibbles::Block::emit_put_between(Vectors& results) {
  const int count = moved_.to_bits_;
  if (count == 1) return;
  if (count == 3) return emit_thirds(results, false);
  const auto emit_pairs = [&](size_t a, size_t b, auto unpack_low, auto unpack_high) {
    const Ymm high = take();
    (code_.*unpack_high)(high, results[a], results[b]);
    (code_.*unpack_low)(results[a], results[a], results[b]);
    give_back(results[b]);
    results[b] = high;
  };
  const auto emit_bytes = [&](size_t a, size_t b) {
    emit_pairs(a, b, &Assembler::vpunpcklbw, &Assembler::vpunpckhbw);
  };
  const auto emit_words = [&](size_t a, size_t b) {
    emit_pairs(a, b, &Assembler::vpunpcklwd, &Assembler::vpunpckhwd);
  };
  emit_bytes(0, 1);
  if (count == 2) return;
  emit_bytes(2, 3);
  emit_words(0, 2);
  emit_words(1, 3);
  std::swap(results[1], results[2]);
}

/// The halves of the vectors, lower ones first, as whole vectors.
void MovedNibbles::Block::emit_stores(const Xbyak::RegExp& sink, Vectors& results) {
  const auto count = static_cast<int>(results.size());
  if (count == 1) emit_store(sink, 0, results[0]);
  const Ymm whole = take();
  for (int i = 0; i < count && count > 1; ++i) {
    const int first = 2 * i;
    const int second = first + 1;
    const int halves = first / count | (2 + second / count) << 4;
    code_.vperm2i128(whole, results[static_cast<size_t>(first % count)],
                     results[static_cast<size_t>(second % count)], static_cast<uint8_t>(halves));
    emit_store(sink, i, whole);
  }
  give_back(whole);
  give_back(results);
}

void MovedNibbles::Block::emit_store(const Xbyak::RegExp& sink, int number, const Ymm& from) {
  const Xbyak::Address to = code_.ptr[sink + vector_bytes * number];
  stores_ == Stores::streaming ? code_.vmovntps(to, from) : code_.vmovups(to, from);
}

void MovedNibbles::Block::emit_in_order(const Xbyak::RegExp& source, const Xbyak::RegExp& sink) {
  for (int i = 0; i < moved_.from_bits_; ++i) {
    const Ymm bytes = take();
    Vectors results = {take()};
    std::vector<bool> is_begun = {false};
    code_.vmovups(bytes, code_.ptr[source + vector_bytes * i]);
    emit_look_up(bytes, 0, results, is_begun);
    if (!is_begun[0]) code_.vpxor(results[0], results[0], results[0]);
    emit_store(sink, i, results[0]);
    give_back({bytes, results[0]});
  }
}

}  // namespace castor::jit
