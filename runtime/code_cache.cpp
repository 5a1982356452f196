// SPDX-License-Identifier: Apache-2.0
#include "runtime/code_cache.hpp"

#include <mutex>

namespace castor {

namespace {

template <class T>
void append(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::string specialisation_key(const jit::Nest& nest, const jit::NestForm& form,
                               const jit::Target& target) {
  std::string key;
  key.reserve(nest.program.code.size() * 28 + nest.operands() * 2 + 16);
  append(key, target.tier);
  append(key, form.rank);
  append(key, form.stores);
  append(key, static_cast<uint32_t>(nest.inputs.size()));
  for (size_t k = 0; k < nest.operands(); ++k) {
    append(key, nest.element(k));
    append(key, form.access[k]);
  }
  for (const jit::LaneInst& inst : nest.program.code) {
    append(key, inst.op);
    append(key, inst.type);
    append(key, inst.narrowing);
    for (jit::LaneId id : {inst.a, inst.b, inst.c, inst.mask}) append(key, id);
    append(key, inst.imm);
    append(key, inst.table);
  }
  for (const jit::ByteTable& table : nest.program.tables) append(key, table);
  return key;
}

NestCodePtr CodeCache::find(const std::string& key) const {
  const std::shared_lock lock(mutex_);
  const auto at = codes_.find(key);
  return at == codes_.end() ? nullptr : at->second;
}

size_t CodeCache::bytes() const {
  const std::shared_lock lock(mutex_);
  return bytes_;
}

NestCodePtr CodeCache::insert(std::string key, NestCodePtr code) {
  const std::unique_lock lock(mutex_);
  const auto [at, inserted] = codes_.emplace(std::move(key), code);
  if (!inserted) return at->second;  // another thread was faster: one code for all
  oldest_first_.push_back(&at->first);
  bytes_ += code->block.size();
  while (bytes_ > capacity_bytes_ && oldest_first_.size() > 1) {
    const auto oldest = codes_.find(*oldest_first_.front());
    oldest_first_.pop_front();
    bytes_ -= oldest->second->block.size();
    codes_.erase(oldest);
  }
  return code;
}

Result<NestCodePtr> CodeCache::get(const jit::Nest& nest, const jit::NestForm& form,
                                   const jit::Target& target) {
  std::string key = specialisation_key(nest, form, target);
  if (NestCodePtr found = find(key)) {
    hits_.fetch_add(1, std::memory_order_relaxed);
    return found;
  }
  Result<jit::MachineCode> emitted = jit::emit_nest(nest, form, target);
  if (!emitted.ok()) return emitted.error();
  Result<jit::CodeBlock> block = memory_.publish(emitted->bytes);
  if (!block.ok()) return block.error();
  compiled_.fetch_add(1, std::memory_order_relaxed);
  return insert(std::move(key), std::make_shared<NestCode>(NestCode{std::move(block).value()}));
}

}  // namespace castor
