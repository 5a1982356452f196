// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/moved_bits.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>

#include "ir/types/storage.hpp"
#include "jit/emit/code_map.hpp"
#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

constexpr int vector_bytes = 64;
constexpr int group = static_cast<int>(storage_group);
constexpr int products_at_once = 8;  ///< bytes that one matrix multiplies

/// Matrices by the byte of a source's group that they are multiplied by.
using Matrices = std::map<int, uint64_t>;

/// What each byte of a sink's group is a sum of. Bit i of a product is the parity of the byte under
/// a mask, which is byte 7 - i of the matrix.
std::vector<Matrices> matrices_of(ElementType from, ElementType to,
                                  const std::vector<uint8_t>& map) {
  std::vector<Matrices> bytes(static_cast<size_t>(bits_of(to)));
  for (int element = 0; element < group; ++element) {
    for (int bit = 0; bit < bits_of(from); ++bit) {
      const int64_t source = storage_bit(from, element, bit);
      for (int result = 0; result < bits_of(to); ++result) {
        if ((map[size_t{1} << bit] >> result & 1) == 0) continue;
        const int64_t sink = storage_bit(to, element, result);
        Matrices& matrices = bytes[static_cast<size_t>(sink / 8)];
        matrices[static_cast<int>(source / 8)] |= uint64_t{1} << (8 * (7 - sink % 8) + source % 8);
      }
    }
  }
  return bytes;
}

/// What becomes of codes of four bits that are cut to `bits`.
std::vector<uint8_t> low_bits(int bits) {
  std::vector<uint8_t> codes(16);
  for (size_t code = 0; code < codes.size(); ++code) {
    codes[code] = static_cast<uint8_t>(code & ((1u << bits) - 1));
  }
  return codes;
}

/// Whether that many bytes are loaded and stored without a mask.
bool is_register_size(int bytes) { return bytes >= 8 && std::has_single_bit(unsigned(bytes)); }

}  // namespace

/// The registers that the code of all blocks uses, and what it is emitted with.
struct MovedBits::Block {
  LaneEmitter& emitter;
  const Frame& frame;
  std::vector<OwnedVector> orders;  ///< the order of each work vector's bytes, then that of results
  std::vector<OwnedVector> tables;  ///< what becomes of the lower and the upper half of a byte
  OwnedVector source;
  OwnedVector result;
  OwnedVector product;
  OwnedMask load_mask;  ///< a block's bytes, where these are no register's size
  OwnedMask store_mask;
};

std::unique_ptr<MovedBits> MovedBits::of(ElementType from, ElementType to,
                                         const std::vector<uint8_t>& map, const Target& target) {
  const bool has_instructions =
      target.supports(Feature::gfni) && target.supports(Feature::avx512_vbmi);
  if (!has_instructions) return nullptr;
  if (moves_bits(map)) return std::unique_ptr<MovedBits>(new MovedBits(from, to, map, {}));
  if (bits_of(from) != 4 || bits_of(to) > 4) return nullptr;
  return std::unique_ptr<MovedBits>(new MovedBits(from, to, low_bits(bits_of(to)), map));
}

MovedBits::MovedBits(ElementType from, ElementType to, const std::vector<uint8_t>& moves,
                     std::vector<uint8_t> replaced)
    : from_(from),
      to_(to),
      replaced_(std::move(replaced)),
      groups_(vector_bytes / std::max(bits_of(from), bits_of(to)) / products_at_once *
              products_at_once),
      blocks_(std::clamp(vector_bytes / groups_, 1, 4)) {
  const std::vector<Matrices> bytes = matrices_of(from, to, moves);
  size_t terms = 1;
  for (const Matrices& matrices : bytes) terms = std::max(terms, matrices.size());
  keeps_order_ = bits_of(from) == bits_of(to) && terms == 1;
  for (size_t j = 0; j < bytes.size(); ++j) {
    keeps_order_ = keeps_order_ && bytes[j].contains(static_cast<int>(j)) &&
                   bytes[j].begin()->second == bytes[0].begin()->second;
  }
  has_order_ = bits_of(to) > 1 && !keeps_order_;
  const auto count = static_cast<int>(terms);
  while (2 * parts_ * part_bytes() <= vector_bytes && parts_ < count) parts_ *= 2;
  products_.resize((terms + static_cast<size_t>(parts_) - 1) / static_cast<size_t>(parts_));
  const int in_group = bits_of(to);
  for (int j = 0; j < in_group; ++j) {
    size_t term = 0;
    for (const auto& [source, matrix] : bytes[static_cast<size_t>(j)]) {
      Products& products = products_[term / static_cast<size_t>(parts_)];
      const int part = static_cast<int>(term++) % parts_ * part_bytes();
      for (int g = 0; g < groups_; ++g) {
        const int at = part + (keeps_order_ ? g * in_group + j : j * groups_ + g);
        products.order[static_cast<size_t>(at)] = static_cast<uint8_t>(g * bits_of(from) + source);
        products.matrices[static_cast<size_t>(at)] =
            static_cast<uint8_t>(matrix >> (8 * (at % products_at_once)));
      }
    }
    for (int g = 0; g < groups_; ++g) {
      order_[static_cast<size_t>(g * in_group + j)] = static_cast<uint8_t>(j * groups_ + g);
    }
  }
}

int MovedBits::part_bytes() const {
  return static_cast<int>(std::bit_ceil(unsigned(sink_bytes())));
}

void MovedBits::emit(Stores stores, LaneEmitter& emitter, const Frame& frame,
                     NestLoops& loops) const {
  Assembler& code = emitter.code();
  Block block{emitter,
              frame,
              {},
              {},
              emitter.scratch(),
              emitter.scratch(),
              emitter.scratch(),
              emitter.scratch_mask(),
              emitter.scratch_mask()};
  {
    const Section constants = code.section(CodeSection::constants);
    const auto keep = [&](const Bytes& order) {
      block.orders.push_back(emitter.scratch());
      code.vmovups(block.orders.back().as(512), code.constant(order));
    };
    for (const Products& products : products_) {
      if (!keeps_order_) keep(products.order);
    }
    if (has_order_) keep(order_);
    for (const int up : {0, 4}) {
      if (replaced_.empty()) continue;
      block.tables.push_back(emitter.scratch());
      code.vmovups(block.tables.back().as(512),
                   code.constant(vector_constant<uint8_t>(
                       512, [&](int i) { return replaced_[static_cast<size_t>(i % 16)] << up; })));
    }
    const auto emit_mask = [&](const OwnedMask& mask, int bytes) {
      if (is_register_size(bytes)) return;
      code.mov(gpr::scratch, (uint64_t{1} << bytes) - 1);
      code.kmovq(mask.get(), gpr::scratch);
    };
    emit_mask(block.load_mask, source_bytes());
    emit_mask(block.store_mask, sink_bytes());
  }
  loops.emit_main_loop(elements(), [&] {
    const Section moved = code.section(CodeSection::moved_bits);
    emit_byte_offset(code, gpr::counter, bits_of(from_));
    emit_byte_offset(code, gpr::scratch, bits_of(to_));
    for (int i = 0; i < blocks_; ++i) emit_block(block, i, stores);
  });
}

/// A whole vector is stored where the next blocks overwrite what is after the results. Where bits
/// are equal the output may be the input's memory: then, and in the last blocks, a mask is used.
void MovedBits::emit_block(const Block& block, int index, Stores stores) const {
  Assembler& code = block.emitter.code();
  const auto as = [](const OwnedVector& vector, int bytes) {
    return vector.as(8 * std::max(bytes, 16));
  };
  const Xbyak::RegExp source = block.frame.emit_pointer(0) + gpr::counter;
  const Xbyak::Address from = code.ptr[source + index * source_bytes()];
  const Xmm loaded = block.source.as(512);
  if (!is_register_size(source_bytes())) {
    code.vmovdqu8(loaded | block.load_mask.get() | Xbyak::util::T_z, from);
  } else if (source_bytes() == 8) {
    code.vmovq(block.source.as(128), from);
  } else {
    code.vmovups(as(block.source, source_bytes()), from);
  }
  if (!replaced_.empty()) emit_replace(block);
  emit_products(block);
  const Xbyak::RegExp sink = block.frame.emit_pointer(1) + gpr::scratch;
  const Xbyak::Address to = code.ptr[sink + index * sink_bytes()];
  if (!is_register_size(sink_bytes())) {
    const bool ends_inside = index * sink_bytes() + vector_bytes <= blocks_ * sink_bytes();
    if (ends_inside && bits_of(from_) != bits_of(to_)) {
      code.vmovups(to, block.result.as(512));
    } else {
      code.vmovdqu8(to | block.store_mask.get(),
                    masked_store_register(block.result.as(512), sink_bytes()));
    }
  } else if (sink_bytes() == 8) {
    code.vmovq(to, block.result.as(128));
  } else {
    const Xmm result = as(block.result, sink_bytes());
    stores == Stores::streaming ? code.vmovntps(to, result) : code.vmovups(to, result);
  }
}

/// A permutation takes six bits of each byte: of the upper two its tables know nothing.
void MovedBits::emit_replace(const Block& block) const {
  Assembler& code = block.emitter.code();
  const Zmm source(block.source.as(512).getIdx());
  const Zmm upper(block.product.as(512).getIdx());
  const auto table = [&](size_t half) { return Zmm(block.tables[half].as(512).getIdx()); };
  code.vpsrlw(upper, source, 4);
  code.vpermb(source, source, table(0));
  code.vpermb(upper, upper, table(1));
  code.vpord(source, source, upper);
}

/// Sums of the work vectors, then of their parts, halves first.
void MovedBits::emit_products(const Block& block) const {
  Assembler& code = block.emitter.code();
  const Zmm source(block.source.as(512).getIdx());
  const Zmm result(block.result.as(512).getIdx());
  const Zmm product(block.product.as(512).getIdx());
  if (keeps_order_ && !replaced_.empty()) return code.vmovdqa64(result, source);  // none is moved
  for (size_t i = 0; i < products_.size(); ++i) {
    const Zmm& to = i == 0 ? result : product;
    if (!keeps_order_) code.vpermb(to, Zmm(block.orders[i].as(512).getIdx()), source);
    code.vgf2p8affineqb(to, keeps_order_ ? source : to, code.constant(products_[i].matrices), 0);
    if (i > 0) code.vpxord(result, result, product);
  }
  for (int bytes = parts_ * part_bytes() / 2; bytes >= part_bytes(); bytes /= 2) {
    const Xmm low(result.getIdx());
    const Xmm high(product.getIdx());
    switch (bytes) {
      case 32:
        code.vextracti64x4(Ymm(product.getIdx()), result, 1);
        code.vpxord(Ymm(result.getIdx()), Ymm(result.getIdx()), Ymm(product.getIdx()));
        break;
      case 16:
        code.vextracti32x4(high, Ymm(result.getIdx()), 1);
        code.vpxord(low, low, high);
        break;
      default:
        assert(bytes == 8);
        code.vpsrldq(high, low, 8);
        code.vpxord(low, low, high);
    }
  }
  if (has_order_) code.vpermb(result, Zmm(block.orders.back().as(512).getIdx()), result);
}

}  // namespace castor::jit
