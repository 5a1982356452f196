// SPDX-License-Identifier: Apache-2.0
// Lane programs away from memory: sources and sinks that are registers, as another emitter's
// epilogue uses them; and what happens when registers run out.
#include <gtest/gtest.h>

#include "jit/emit/lane_emitter.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/lane/optimize.hpp"
#include "jit/lower/convert.hpp"
#include "jit/memory/code_memory.hpp"
#include "tests/support/conversions.hpp"

namespace castor::jit {
namespace {

/// Hands in a register that the surrounding code has filled.
class RegisterSource : public Source {
 public:
  explicit RegisterSource(int index) : index_(index) {}
  void emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xbyak::Xmm& to) override {
    const int bits = emitter.register_bits(inst.type);
    emitter.code().vmovaps(to, vector_register(index_, bits));
  }

 private:
  int index_;
};

/// Takes the result, in lanes of the element's own width, to where the surrounding code wants it.
class RegisterSink : public Sink {
 public:
  explicit RegisterSink(const Xbyak::Reg64& to) : to_(to) {}
  void emit_store(LaneEmitter& emitter, const LaneInst& inst) override {
    const Xbyak::Xmm value = emitter.use(inst.a);
    emitter.code().vmovups(emitter.code().ptr[to_], value);
  }

 private:
  Xbyak::Reg64 to_;
};

/// i32 accumulators in a register become f32 in a register: the shape of a convolution's epilogue.
TEST(LaneEmitter, RegistersAsSourceAndSink) {
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const Target target{tier};
    LaneProgram program;
    program.sources.push_back({ElementType::i32});
    program.sinks.push_back({ElementType::f32});
    LaneBuilder builder(target, program);
    LaneTensor accumulators = LaneTensor::from_source(builder, ElementType::i32, 0);
    LaneTensor result = lower_convert(builder, accumulators, ElementType::f32, {});
    builder.store(0, result.as_storable().lanes, result.as_storable().narrowing);
    optimize(program, target);

    const int lanes = target.vector_bits() / program.widest_bits();
    std::vector<uint8_t> buffer(4096);
    Assembler code(buffer, false);
    const int accumulator = target.vector_registers() - 1;
    LaneEmitter emitter(code, target, program, lanes, 1, {},
                        {.vectors = uint32_t{1} << accumulator});
    RegisterSource source(accumulator);
    RegisterSink sink(Xbyak::util::rsi);
    Source* const sources[] = {&source};
    Sink* const sinks[] = {&sink};
    emitter.emit_constants(sources, sinks);
    code.vmovups(vector_register(accumulator, target.vector_bits()), code.ptr[Xbyak::util::rdi]);
    emitter.emit_chunk(sources, sinks);
    code.vzeroupper();
    code.ret();

    CodeMemory memory;
    const Result<CodeBlock> block = memory.publish(code.finish());
    ASSERT_TRUE(block.ok()) << block.error().message;
    int32_t in[16];
    float out[16] = {};
    for (int i = 0; i < 16; ++i) in[i] = i * 1000001 - 7000000;
    const auto entry = reinterpret_cast<void (*)(const int32_t*, float*)>(
        reinterpret_cast<uintptr_t>(block->code()));
    entry(in, out);
    for (int i = 0; i < lanes; ++i) {
      EXPECT_EQ(out[i], static_cast<float>(in[i])) << name_of(tier) << ", lane " << i;
    }
  }
}

/// More values alive than registers: sums of everything loaded, in reverse order.
TEST(LaneEmitter, SpillsWhatIsNeededLast) {
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const Target target{tier};
    constexpr int alive = 40;
    Nest nest;
    nest.program.sources.push_back({ElementType::i32});
    LaneBuilder builder(target, nest.program);
    const LaneId x = builder.load(0, LaneType::i32);
    std::vector<LaneId> values = {x};
    for (int i = 1; i < alive; ++i) values.push_back(builder.add(values.back(), x));
    LaneId sum = values.back();
    for (int i = alive - 2; i >= 0; --i) {
      sum = builder.bit_xor(sum, values[static_cast<size_t>(i)]);
    }
    nest.inputs.push_back(0);
    nest.outputs.push_back(0);
    nest.program.sinks.push_back({ElementType::i32});
    builder.store(0, sum, Narrowing::truncate);
    optimize(nest.program, target);

    const Result<MachineCode> code = emit_nest(nest, NestForm::dense(2), target);
    ASSERT_TRUE(code.ok()) << code.error().message;
    EXPECT_GT(code->spills, 0) << name_of(tier);
    CodeMemory memory;
    const Result<CodeBlock> block = memory.publish(*code);
    ASSERT_TRUE(block.ok()) << block.error().message;
    uint32_t in[37];
    uint32_t out[37] = {};
    for (uint32_t i = 0; i < 37; ++i) in[i] = i * 2654435761U;
    const ArgumentLayout layout(2, 1);
    std::vector<int64_t> arguments(layout.words(), 0);
    arguments[layout.pointer(0)] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(in));
    arguments[layout.pointer(1)] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(out));
    arguments[layout.extent(0)] = 37;
    reinterpret_cast<KernelFunction<NestSpec>>(reinterpret_cast<uintptr_t>(block->code()))(
        arguments.data());
    for (uint32_t i = 0; i < 37; ++i) {
      uint32_t expected = 0;
      for (uint32_t k = 1; k <= alive; ++k) expected ^= in[i] * k;
      ASSERT_EQ(out[i], expected) << name_of(tier) << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace castor::jit
