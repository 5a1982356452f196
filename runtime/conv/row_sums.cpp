// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/row_sums.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/conv/convolution_step.hpp"
#include "runtime/conv/interleave.hpp"

namespace castor::detail {

namespace {

/// Adds up runs of bytes, 16 at a time.
class RunSummer {
 public:
  /// Bytes have the sign flip xored to them.
  RunSummer(int64_t bytes, std::byte sign_flip)
      : whole_(bytes / vector_bytes), sign_flip_(_mm_set1_epi8(std::to_integer<char>(sign_flip))) {
    std::array<uint8_t, vector_bytes> kept = {};
    std::fill_n(kept.begin(), bytes % vector_bytes, 0xff);
    std::memcpy(&kept_, kept.data(), sizeof kept_);
  }
  /// Bytes that are read from where a run begins.
  int64_t read_bytes() const { return (whole_ + 1) * vector_bytes; }
  /// The sum in two halves, which `total` adds.
  __m128i sum(const std::byte* run) const {
    __m128i sum = _mm_setzero_si128();
    for (int64_t i = 0; i < whole_; ++i) sum = _mm_add_epi64(sum, sum_of(load(run, i)));
    return _mm_add_epi64(sum, sum_of(_mm_and_si128(load(run, whole_), kept_)));
  }
  static uint32_t total(__m128i sum) {
    return static_cast<uint32_t>(
        _mm_cvtsi128_si32(_mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum))));
  }

 private:
  static constexpr int64_t vector_bytes = 16;

  __m128i load(const std::byte* run, int64_t vector) const {
    const auto* at = reinterpret_cast<const __m128i*>(run + vector * vector_bytes);
    return _mm_xor_si128(_mm_loadu_si128(at), sign_flip_);
  }
  static __m128i sum_of(__m128i bytes) { return _mm_sad_epu8(bytes, _mm_setzero_si128()); }

  int64_t whole_;  ///< vectors of a run
  __m128i sign_flip_;
  __m128i kept_;  ///< those bytes of a vector that are the remainder of a run
};

/// Adds up the windows of a block whose source is rows or the input: first the elements at each row
/// and column, then rows, then columns. Where columns hold few elements and windows overlap little,
/// each row of a window at once.
class RowSummer {
 public:
  RowSummer(const jit::DensePlan& plan, const jit::CacheBlock& block,
            const jit::DenseTuning& tuning, int32_t* work)
      : plan_(plan),
        input_(plan.input_rows()),
        block_(block),
        tuning_(tuning),
        is_signed_(plan.tile.x_is_signed || plan.engine == jit::ProductEngine::i8_u8_dot),
        sign_flip_(plan.tile.has_sign_flip ? std::byte{0x80} : std::byte{0}),
        rows_(jit::input_extent(block.rows, plan.rows)),
        columns_(jit::input_extent(block.columns, plan.columns)),
        at_(work),
        window_rows_(work + rows_ * columns_) {}

  void sum(const std::byte* source, int32_t* to) const {
    if (sums_runs()) {
      for (int64_t row = 0; row < block_.rows; ++row) {
        sum_runs(source + row * plan_.source_row_step(), to + row * block_.columns);
      }
      return;
    }
    std::fill_n(at_, rows_ * columns_, 0);
    for (int64_t plane : input_.planes) {
      for (int64_t row = 0; row < rows_; ++row) {
        if (row % plan_.rows.stride >= plan_.rows.window()) continue;  // no tap reads it
        add_row(source + plane + row * input_.row_bytes, at_ + row * columns_);
      }
    }
    for (int64_t row = 0; row < block_.rows; ++row) sum_row(row, to + row * block_.columns);
  }

 private:
  void add_row(const std::byte* from, int32_t* to) const {
    const int64_t elements = input_.channels;
    const int64_t step = input_.column_bytes;
    if (elements <= max_single) {
      for (const std::byte* element = from; element < from + elements; ++element) {
        for (int64_t i = 0; i < columns_; ++i) {
          to[i] += value_of(element[i * step] ^ sign_flip_, is_signed_);
        }
      }
      return;
    }
    for (int64_t i = 0; i < columns_; ++i) {
      if (plan_.columns.stride > 1 && i % plan_.columns.stride >= plan_.columns.window()) continue;
      to[i] += sum_of(from + i * step, elements);
    }
  }

  /// Whether a row of a window is contiguous, and is added up faster than its elements are one by
  /// one.
  bool sums_runs() const {
    constexpr int64_t vector_bytes = 16;
    const int64_t elements = input_.channels;
    const bool has_runs = input_.column_bytes == elements &&
                          (plan_.columns.kernel == 1 || plan_.columns.dilation == 1);
    const int64_t vectors = run_bytes() / vector_bytes + 1;
    const int64_t vectors_read = block_.pixels() * plan_.rows.kernel * vectors;
    return has_runs && elements <= max_single &&
           tuning_.summed_run_vector * static_cast<double>(vectors_read) <
               static_cast<double>(rows_ * columns_ * elements);
  }
  int64_t run_bytes() const { return plan_.columns.kernel * input_.channels; }

  /// Sums of a row of windows. What no vector may read is added up byte by byte.
  void sum_runs(const std::byte* from, int32_t* to) const {
    const RunSummer summer(run_bytes(), to_unsigned());
    const int64_t step = plan_.source_column_step();
    const int64_t row_bytes = columns_ * input_.column_bytes;
    const int64_t runs = std::ssize(input_.planes) * plan_.rows.kernel;
    const auto less = static_cast<uint32_t>(is_signed_ ? 128 * run_bytes() * runs : 0);
    for (int64_t i = 0; i < block_.columns; ++i) {
      if (i * step + summer.read_bytes() > row_bytes) {
        to[i] = sum_run_by_run(from + i * step);
        continue;
      }
      __m128i sum = _mm_setzero_si128();
      for_each_run(from + i * step,
                   [&](const std::byte* run) { sum = _mm_add_epi64(sum, summer.sum(run)); });
      to[i] = static_cast<int32_t>(RunSummer::total(sum) - less);
    }
  }
  int32_t sum_run_by_run(const std::byte* from) const {
    uint32_t sum = 0;  // modulo 2^32
    for_each_run(from, [&](const std::byte* run) {
      sum += static_cast<uint32_t>(sum_of(run, run_bytes()));
    });
    return static_cast<int32_t>(sum);
  }
  /// The rows of a window.
  template <class Visit>
  void for_each_run(const std::byte* from, const Visit& visit) const {
    const int64_t step = plan_.rows.dilation * input_.row_bytes;
    for (const int64_t plane : input_.planes) {
      for (int64_t r = 0; r < plan_.rows.kernel; ++r) visit(from + plane + r * step);
    }
  }

  /// What makes elements unsigned, as kernels multiply them; signed ones have 128 added.
  std::byte to_unsigned() const { return is_signed_ ? std::byte{0x80} : sign_flip_; }
  /// The sum of elements as kernels multiply them.
  int32_t sum_of(const std::byte* from, int64_t elements) const {
    const auto sum =
        static_cast<int32_t>(sum_of_bytes(from, elements, std::to_integer<uint8_t>(to_unsigned())));
    return is_signed_ ? sum - 128 * static_cast<int32_t>(elements) : sum;
  }

  /// Compiled for AVX2, which every tier has: the compiler vectorises its loops.
  [[gnu::target("avx2")]] void sum_row(int64_t row, int32_t* to) const {
    std::fill_n(window_rows_, columns_, 0);
    for (int64_t r = 0; r < plan_.rows.kernel; ++r) {
      const int32_t* from = at_ + (row * plan_.rows.stride + r * plan_.rows.dilation) * columns_;
      for (int64_t i = 0; i < columns_; ++i) window_rows_[i] += from[i];
    }
    std::fill_n(to, block_.columns, 0);
    for (int64_t s = 0; s < plan_.columns.kernel; ++s) {
      const int32_t* from = window_rows_ + s * plan_.columns.dilation;
      for (int64_t i = 0; i < block_.columns; ++i) to[i] += from[i * plan_.columns.stride];
    }
  }

  static constexpr int64_t max_single = 4;  ///< elements that are added one by one

  const jit::DensePlan& plan_;
  const jit::InputRows& input_;
  const jit::CacheBlock& block_;
  const jit::DenseTuning& tuning_;
  const bool is_signed_;       ///< the elements, as kernels take them
  const std::byte sign_flip_;  ///< what the kernel xors to the elements of the source
  const int64_t rows_;
  const int64_t columns_;
  int32_t* at_;           ///< sums of the elements at a row and column
  int32_t* window_rows_;  ///< of a column's rows of one window
};

}  // namespace

int64_t row_window_sum_work(const jit::DensePlan& plan) {
  return (jit::input_extent(plan.block.rows, plan.rows) + 1) *
         jit::input_extent(plan.block.columns, plan.columns);
}

void set_row_window_sums(const jit::DensePlan& plan, const jit::CacheBlock& block,
                         const jit::DenseTuning& tuning, const std::byte* source, int32_t* work,
                         int32_t* to) {
  RowSummer(plan, block, tuning, work).sum(source, to);
}

}  // namespace castor::detail
