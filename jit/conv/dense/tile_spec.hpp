// SPDX-License-Identifier: Apache-2.0
// The microkernel of dense integer convolutions: it multiplies packed weights by packed input along
// K and fills a register tile of accumulators, less the zero-point compensation, applies an
// epilogue and stores.
//
// A register tile has rows and vectors: acc[row][vector] += broadcast(row) x vector(vector). It is
// pixel-vectorised (vectors of output pixels; rows are output channels) or channel-vectorised
// (vectors of output channels; rows are output pixels). The addresses of input come from a table of
// offsets, one for each k step, equal for all pixels. So the microkernel knows no geometry, and one
// serves every layer that uses its tile.
//
// With AMX a channel-vectorised tile may be made of tile registers: each has 16 channels of up to
// 16 pixels, and a k step takes up to 64 bytes of each pixel.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/dot_product.hpp"
#include "jit/conv/epilogue/epilogue.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"
#include "jit/tile_config.hpp"

namespace castor::jit {

/// What is along a vector of accumulators.
enum class Vectorised : uint8_t { pixels, channels };
constexpr std::array<std::string_view, 2> names_of(Vectorised) { return {"pixels", "channels"}; }

/// How a register tile is stored.
enum class StorePolicy : uint8_t {
  rows,        ///< as it is; lanes that are not stored are the last ones of a row
  compressed,  ///< pixel-vectorised: dead lanes anywhere in a vector are left out
  transposed,  ///< channel-vectorised: the pixels of a channel are consecutive in the output
};
constexpr std::array<std::string_view, 3> names_of(StorePolicy) {
  return {"rows", "compressed", "transposed"};
}

/// Where a pixel-vectorised tile reads its input.
enum class PixelSource : uint8_t {
  packed,
  /// The input itself, in NCHW: the kernel interleaves the channels of each k step and writes the
  /// packed input meanwhile, for others to read. All lanes are stored.
  input,
  signed_input,  ///< i8, the same way: with a sign flip, or widened to i16 as it is
};
constexpr std::array<std::string_view, 3> names_of(PixelSource) {
  return {"packed", "input", "signed_input"};
}

struct DenseArguments;

/// Everything that the microkernel's code depends on besides target and epilogue.
struct DenseTile {
  static constexpr std::string_view name = "dense";
  using Arguments = const DenseArguments;

  static constexpr int tile_rows = 16;       ///< rows that a tile register has
  static constexpr int tile_registers = 8;   ///< that there are
  static constexpr int max_pixel_tiles = 5;  ///< with a vector of channels and its operands
  static constexpr int max_step_bytes = 64;

  Vectorised vectorised = Vectorised::pixels;
  ProductEngine engine = ProductEngine::u8_i8_dot;
  int channels = 1;    ///< output channels
  int vectors = 1;     ///< pixel-vectorised: vectors of output pixels
  int pixel_rows = 1;  ///< channel-vectorised: rows of output pixels
  int columns = 1;     ///< channel-vectorised: output pixels of each row
  /// Channel-vectorised: bytes of the input from one column to the next; not of tile registers'
  /// kernels, which get it in their arguments.
  int32_t pixel_step = 4;
  int32_t row_step = 0;  ///< the same from one row to the next; 0 where there is one
  WindowSums window_sums = WindowSums::none;  ///< how the zero-point compensation is subtracted
  StorePolicy store = StorePolicy::rows;
  /// K steps at the end that are done row group by row group, each of which is stored before the
  /// next begins; after an even number of others. 0: none, after any number; so it is where lanes
  /// are compressed.
  int peeled_k_steps = 0;
  int group_rows = 0;  ///< rows of a row group, where k steps are peeled
  /// Pixel-vectorised: whether the cache lines of the output are prefetched when a tile begins; not
  /// with an epilogue.
  bool prefetches_output = false;
  /// Pixel-vectorised; other than packed only where `may_take_input`, without compression, with no
  /// window sums but its own.
  PixelSource source = PixelSource::packed;
  /// Whether k steps prefetch weights for the next tile of channels, which come from beyond L2; not
  /// where pixels come from the input, nor with tile registers.
  bool prefetches_weights = false;
  /// Whether pixels from the input are not stored as packed input, for they are read once: no k
  /// steps are peeled.
  bool reads_input_once = false;
  /// Whether the table of offsets is that of one k group, gone through for each of
  /// `DenseArguments::k_groups`; then no k steps are peeled.
  bool loops_k_groups = false;
  /// Channel-vectorised, of u8 by i8: whether x is signed and read where it is, so that it gets its
  /// sign flip operand by operand.
  bool has_sign_flip = false;
  /// Transposed, with AVX-512 and without tile registers, epilogue and peeled k steps: whether
  /// accumulators are transposed by shuffles in registers, not by loads of their parts from the
  /// staging buffer. Plans may have it with both of these (kernel_tile, dense_plan.hpp).
  bool transposes_registers = false;
  // Where tile registers multiply (ProductEngine::tiles), channel-vectorised:
  /// Positions from one row of pixels to the next, where rows are one line with dead positions
  /// between them; 0: each row is a line.
  int row_pitch = 0;
  int step_bytes = 0;  ///< that a k step takes from a pixel: whole k groups, at most 64
  bool x_is_signed = false;
  bool w_is_signed = false;
  /// Whether a tile's weights come from L2 each time, so that they should not displace the input in
  /// L1.
  bool streams_weights = false;
  /// Whether k steps bring weights that come from L2 to L1 two k steps ahead.
  bool fetches_weights = false;
  /// Whether a tile's pixels come from L2, so that they should not displace the weights in L1.
  bool streams_pixels = false;
  /// Whether multiplications in vector registers stand beside products that have no others there:
  /// of many k steps; not with an epilogue.
  bool has_idle_products = false;
  /// Whether all tiles of channels of some pixels are done before the next pixels: where all
  /// weights stay near, input and output are each gone through once.
  bool channels_inside = false;
  /// Cache lines of the next tile of channels' weights that a k step prefetches.
  int prefetched_lines = 0;
  /// Whether first values are by pixel, each of them sixteen times, not by channel: where the roles
  /// of pixels and channels are exchanged (WeightRowsPlan).
  bool has_first_values_by_pixel = false;

  bool has_tiles() const { return engine == ProductEngine::tiles; }
  /// With tile registers: rows of pixels are one line of positions, perhaps with dead ones between
  /// them, or each row is a line.
  bool is_one_line() const { return row_pitch > 0; }
  bool has_dead_positions() const { return row_pitch > columns && pixel_rows > 1; }
  int lines() const { return is_one_line() ? 1 : pixel_rows; }
  int line_positions() const {
    return is_one_line() ? (pixel_rows - 1) * row_pitch + columns : columns;
  }
  /// Tile registers of a line, and the positions of each; the last one may overlap the one before.
  int line_tiles() const { return (line_positions() + tile_rows - 1) / tile_rows; }
  int pixels_of_tile() const { return (line_positions() + line_tiles() - 1) / line_tiles(); }
  /// Tile registers of pixels.
  int pixel_tiles() const { return lines() * line_tiles(); }
  /// Tile registers that hold pixels: with a single vector of channels two by turns.
  int pixel_registers() const {
    return vectors_of(tile_rows) == 1 ? std::min(pixel_tiles(), 2) : pixel_tiles();
  }
  /// The position of a pixel of the register tile, as results are stored.
  int position_of(int pixel) const {
    return is_one_line() ? pixel / columns * row_pitch + pixel % columns : pixel;
  }
  /// The position with which one of the tile registers begins.
  int first_position(int pixel_tile) const {
    const int in_line = pixel_tile % line_tiles() * pixels_of_tile();
    return pixel_tile / line_tiles() * line_positions() +
           std::min(in_line, line_positions() - pixels_of_tile());
  }
  /// Bytes of the input from the first pixel to that at a position.
  int32_t source_offset(int position) const {
    return position / line_positions() * row_step + position % line_positions() * pixel_step;
  }

  int pixels() const { return pixel_rows * columns; }  ///< channel-vectorised
  /// Broadcast operands: rows of the register tile.
  int rows() const { return vectorised == Vectorised::pixels ? channels : pixels(); }
  /// Vectors of each row, of that many lanes.
  int vectors_of(int lanes) const {
    return vectorised == Vectorised::pixels ? vectors : (channels + lanes - 1) / lanes;
  }

  /// Whether vectors of pixels are multiplied two by two as they are loaded, so that a row may
  /// have more of them than registers could hold.
  bool passes_pixels() const {
    const bool has_pairs_of_pixels =
        engine == ProductEngine::i16_pairs && vectorised == Vectorised::pixels;
    return has_pairs_of_pixels && (reads_input_once || channels == 1);
  }
  /// Vectors that a k step has in registers at a time.
  int held_vectors(int lanes) const {
    return passes_pixels() ? std::min(vectors, 2) : vectors_of(lanes);
  }

  static constexpr auto fields(const auto& list) {
    return list(
        field("vectorised", &DenseTile::vectorised), field("engine", &DenseTile::engine),
        field("channels", &DenseTile::channels), field("vectors", &DenseTile::vectors),
        field("rows", &DenseTile::pixel_rows), field("columns", &DenseTile::columns),
        field("pixel_step", &DenseTile::pixel_step), field("row_step", &DenseTile::row_step),
        field("window_sums", &DenseTile::window_sums), field("store", &DenseTile::store),
        field("peeled_k_steps", &DenseTile::peeled_k_steps),
        field("group_rows", &DenseTile::group_rows),
        field("prefetch", &DenseTile::prefetches_output), field("source", &DenseTile::source),
        field("prefetches_weights", &DenseTile::prefetches_weights),
        field("reads_input_once", &DenseTile::reads_input_once),
        field("loops_k_groups", &DenseTile::loops_k_groups),
        field("sign_flip", &DenseTile::has_sign_flip),
        field("transposes_registers", &DenseTile::transposes_registers),
        field("row_pitch", &DenseTile::row_pitch), field("step_bytes", &DenseTile::step_bytes),
        field("signed_x", &DenseTile::x_is_signed), field("signed_w", &DenseTile::w_is_signed),
        field("streams_weights", &DenseTile::streams_weights),
        field("fetches_weights", &DenseTile::fetches_weights),
        field("streams_pixels", &DenseTile::streams_pixels),
        field("idle_products", &DenseTile::has_idle_products),
        field("channels_inside", &DenseTile::channels_inside),
        field("prefetched_lines", &DenseTile::prefetched_lines),
        field("first_values_by_pixel", &DenseTile::has_first_values_by_pixel));
  }
};

/// With tile registers: the configuration that the tile's kernel works with. A caller that loads it
/// first saves each call from loading it.
TileConfig tile_configuration(const DenseTile& tile);

/// Whether the target has the tile's engine and registers for its accumulators and operands, and
/// what is transposed is at most one vector of pixels, but for tile registers, whose rows
/// of pixels follow each other in the output if they are transposed.
bool fits(const DenseTile& tile, const Target& target);

/// Whether a tile leaves pixels that it takes from the input in another order until all products
/// are done.
inline bool reorders_sums(const DenseTile& tile) {
  return tile.reads_input_once && !tile.passes_pixels() && tile.vectors % 4 == 0;
}

/// Whether a pixel-vectorised tile may take its pixels from the input: in vectors of 256 bits; of
/// bytes in wider ones too, with VBMI or where `reorders_sums`.
bool may_take_input(const DenseTile& tile, const Target& target);

/// For planners: rows of a row group of a tile with that many vectors in each row.
int rows_of_group(int vectors, const Target& target);
/// For planners: peels k steps of a tile that has so many. Where row groups would be single rows,
/// of many vectors, loading these again for each group costs more than it gains; with 16 registers
/// there are too few accumulators.
void peel_k_steps(DenseTile& tile, size_t k_steps, const Target& target);

/// Where a channel-vectorised tile reads its input and stores its results.
struct TileOrigin {
  int64_t pixel = 0;   ///< of the output: its first one, from that of the block
  int64_t source = 0;  ///< bytes from the block's first pixel
};

/// The same of one vector of a pixel-vectorised tile, and which lanes are stored: consecutively.
struct ConvStore {
  static constexpr int max_lanes = 16;
  int64_t pixel = 0;               ///< of the first lane that is stored, from the line's first one
  int64_t source = 0;              ///< bytes from the line's first k group to the first lane's
  uint32_t lanes = 0;              ///< a bit for each lane that is stored
  uint32_t first_lanes = 0;        ///< as many low bits
  int32_t order[max_lanes] = {};   ///< the lanes that are stored, in order
  int32_t stored[max_lanes] = {};  ///< as many times -1, then 0
};
static_assert(offsetof(ConvStore, pixel) == offsetof(TileOrigin, pixel) &&
              offsetof(ConvStore, source) == offsetof(TileOrigin, source));

/// The argument of the microkernel's code. All pointers are valid for all tiles. Those of a
/// pixel-vectorised kernel are a line: tiles of consecutive vectors, whose last ones may store no
/// lane but are read. Operands along vectors of channels are whole vectors.
struct DenseArguments {
  const std::byte* source = nullptr;   ///< the first pixel of the line or block, at offset 0
  const int32_t* k_steps = nullptr;    ///< byte offset of each k step
  int64_t k_step_count = 0;            ///< at least 1
  const std::byte* weights = nullptr;  ///< for each k step one k group of each channel
  const int32_t* start =
      nullptr;  ///< first values of accumulators, by channel, or sixteen by pixel
  const int32_t* weight_zero_points = nullptr;  ///< by channel
  /// By k group of the line, or by output pixel; those that the kernel adds up itself are written.
  int32_t* window_sums = nullptr;
  const ConvStore* stores = nullptr;  ///< pixel-vectorised: by vector
  int32_t* output = nullptr;          ///< first channel of the first pixel
  /// Bytes from one row of the tile to the next in the output; where it is transposed, from one
  /// channel to the next.
  int64_t output_step = 0;
  /// Instead of the output, where there is an epilogue: its operands at the first pixel.
  const EpilogueOperand* epilogue = nullptr;
  int64_t tiles = 0;  ///< at least 1
  /// Where pixels come from the input: the line's first pixel in its first channel, to be packed in
  /// `source`, and bytes from one channel to the next.
  const std::byte* input = nullptr;
  int64_t input_step = 0;
  /// Where the tile loops over k groups: how many there are (at least 1), and the bytes from the
  /// packed input of one to that of the next.
  int64_t k_groups = 1;
  int64_t k_group_step = 0;
  const TileOrigin* places = nullptr;  ///< channel-vectorised: by tile
  /// With tile registers: bytes of the input from one column to the next, and from the first pixel
  /// of each pixel tile to that of the next one.
  int64_t pixel_step = 0;
  int64_t pixel_tile_steps[DenseTile::max_pixel_tiles - 1] = {};
  /// With tile registers: tiles of channels, at least 1, and bytes from the weights of one to those
  /// of the next. What is by channel, and the output, goes on by the tile's channels.
  int64_t channel_tiles = 1;
  int64_t weight_tile_bytes = 0;
  /// Where weights are prefetched: the first line, and the bytes to the next one, two k steps
  /// later.
  const std::byte* prefetched = nullptr;
  int64_t prefetch_step = 0;
  uint32_t zero_point_bytes = 0;  ///< WindowSums::own_products: the zero point in each byte
};

/// Emits the microkernel. A pure function of its arguments. `tile` fits the target. `epilogue` may
/// be null.
Result<MachineCode> emit_kernel(const DenseTile& tile, const Target& target,
                                const TileEpilogue* epilogue = nullptr,
                                const EmitOptions& options = {});

}  // namespace castor::jit
