// SPDX-License-Identifier: Apache-2.0
// Steps to smaller shapes.
#include <set>

#include "tools/fuzz/candidates.hpp"
#include "tools/fuzz/cells.hpp"

namespace castor::fuzz {

namespace {

class ShapeReductions : Candidates {
 public:
  explicit ShapeReductions(const Program& program) : Candidates(program) {}

  std::vector<Program> take() {
    reduce_extents();
    return std::move(all_);
  }

 private:
  std::set<int64_t> extents() const {
    std::set<int64_t> all;
    Program copy = program_;
    change_axes(copy, [&](const std::vector<AxisSpec>& axes) {
      for (const AxisSpec& axis : axes) all.insert(copy.extent_of(axis));
    });
    return all;
  }

  template <class Change>
  void add_reshaped(Change change) {
    add([&](Program& p) {
      write_numbers(p);
      change_axes(p, change);
      resize_constants(p);
    });
  }

  void reduce_extents() {
    if (!extents().empty()) {
      add_reshaped([](std::vector<AxisSpec>& axes) { axes.clear(); });
    }
    Program numbers = program_;
    write_numbers(numbers);
    if (print_axes(numbers) != print_axes(program_)) add([](Program& p) { write_numbers(p); });
    for (int axis = 0; axis < max_drawn_rank; ++axis) remove_axis(axis);
    for (int64_t extent : extents()) {
      for (int64_t smaller : {int64_t{1}, extent / 2, extent - 1}) {
        if (smaller >= 1 && smaller < extent) replace_extent(extent, smaller);
      }
    }
    for (size_t i = 0; i < program_.inputs.size(); ++i) reduce_input(i);
  }

  static std::vector<int> print_axes(const Program& program) {
    std::vector<int> kinds;
    Program copy = program;
    change_axes(copy, [&](const std::vector<AxisSpec>& axes) {
      for (const AxisSpec& axis : axes) kinds.push_back(static_cast<int>(axis.kind));
    });
    return kinds;
  }

  /// Removes an axis of all tensors, counted from the right.
  void remove_axis(int from_right) {
    bool changes = false;
    Program copy = program_;
    change_axes(copy, [&](const std::vector<AxisSpec>& axes) {
      changes = changes || axes.size() > static_cast<size_t>(from_right);
    });
    if (!changes) return;
    add_reshaped([=](std::vector<AxisSpec>& axes) {
      if (axes.size() > static_cast<size_t>(from_right)) axes.erase(axes.end() - 1 - from_right);
    });
  }

  void replace_extent(int64_t extent, int64_t smaller) {
    add_reshaped([=](std::vector<AxisSpec>& axes) {
      for (AxisSpec& axis : axes) {
        if (axis.kind == AxisSpec::Kind::fixed && axis.extent == extent) axis.extent = smaller;
      }
    });
  }

  /// One input's axes alone, or one target's.
  void reduce_input(size_t input) {
    const std::vector<AxisSpec>& axes = program_.inputs[input].axes;
    if (!axes.empty()) {
      add([&](Program& p) {
        write_numbers(p);
        p.inputs[input].axes.erase(p.inputs[input].axes.begin());
      });
    }
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      for (int64_t smaller : {int64_t{1}, program_.extent_of(axes[axis]) / 2}) {
        if (smaller < 1 || smaller >= program_.extent_of(axes[axis])) continue;
        add([&](Program& p) {
          write_numbers(p);
          p.inputs[input].axes[axis].extent = smaller;
        });
      }
    }
  }
};

}  // namespace

std::vector<Program> smaller_shapes(const Program& program) {
  return ShapeReductions(program).take();
}

}  // namespace castor::fuzz
