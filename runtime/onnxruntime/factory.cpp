// SPDX-License-Identifier: Apache-2.0
// The two functions that ONNX Runtime looks for in the library, and the factory that they make.
#include <map>
#include <mutex>

#include "runtime/onnxruntime/guarded.hpp"
#include "runtime/onnxruntime/provider.hpp"

namespace castor::onnxruntime {

namespace {

/// Lives from the library's registration to its end, and with it the runtimes, whose caches the
/// sessions share.
class Factory final : public abi::OrtEpFactory {
 public:
  explicit Factory(const Host& host);

  const Host& host() const { return host_; }
  Status find_devices(const abi::OrtHardwareDevice* const* devices, size_t count,
                      abi::OrtEpDevice** made, size_t max, size_t* found);
  Status make_provider(const abi::OrtSessionOptions* session, const abi::OrtLogger* logger,
                       abi::OrtEp** made);

 private:
  Result<Runtime> runtime_of(const Options& options);

  Host host_;
  std::mutex mutex_;
  std::map<std::pair<std::optional<jit::Tier>, bool>, Runtime> runtimes_;  ///< and perf_map
};

Factory& factory(abi::OrtEpFactory* base) { return *static_cast<Factory*>(base); }

Factory::Factory(const Host& host) : abi::OrtEpFactory{}, host_(host) {
  ort_version_supported = host.version();
  GetName = [](const abi::OrtEpFactory*) { return provider_name; };
  GetVendor = [](const abi::OrtEpFactory*) { return "castor"; };
  GetSupportedDevices = [](abi::OrtEpFactory* base, const abi::OrtHardwareDevice* const* devices,
                           size_t count, abi::OrtEpDevice** made, size_t max, size_t* found) {
    return guarded(factory(base).host(),
                   [&] { return factory(base).find_devices(devices, count, made, max, found); });
  };
  CreateEp = [](abi::OrtEpFactory* base, const abi::OrtHardwareDevice* const*,
                const abi::OrtKeyValuePairs* const*, size_t, const abi::OrtSessionOptions* session,
                const abi::OrtLogger* logger, abi::OrtEp** made) {
    return guarded(factory(base).host(),
                   [&] { return factory(base).make_provider(session, logger, made); });
  };
  ReleaseEp = [](abi::OrtEpFactory*, abi::OrtEp* ep) { delete static_cast<Provider*>(ep); };
  GetVendorId = [](const abi::OrtEpFactory*) { return uint32_t{0}; };
  GetVersion = [](const abi::OrtEpFactory*) { return version().data(); };
  ValidateCompiledModelCompatibilityInfo =
      [](abi::OrtEpFactory*, const abi::OrtHardwareDevice* const*, size_t, const char*,
         abi::OrtCompiledModelCompatibility* answer) -> abi::OrtStatus* {
    *answer = abi::OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    return nullptr;
  };
  // Tensors are in CPU memory that ONNX Runtime owns; there is nothing to allocate or to move.
  CreateAllocator = [](abi::OrtEpFactory*, const abi::OrtMemoryInfo*, const abi::OrtKeyValuePairs*,
                       abi::OrtAllocator** made) -> abi::OrtStatus* {
    *made = nullptr;
    return nullptr;
  };
  ReleaseAllocator = [](abi::OrtEpFactory*, abi::OrtAllocator*) {};
  CreateDataTransfer = [](abi::OrtEpFactory*, abi::OrtDataTransferImpl** made) -> abi::OrtStatus* {
    *made = nullptr;
    return nullptr;
  };
  IsStreamAware = [](const abi::OrtEpFactory*) { return false; };
  CreateSyncStreamForDevice = [](abi::OrtEpFactory*, const abi::OrtMemoryDevice*,
                                 const abi::OrtKeyValuePairs*,
                                 abi::OrtSyncStreamImpl** made) -> abi::OrtStatus* {
    *made = nullptr;
    return nullptr;
  };
}

Status Factory::find_devices(const abi::OrtHardwareDevice* const* devices, size_t count,
                             abi::OrtEpDevice** made, size_t max, size_t* found) {
  *found = 0;
  for (size_t i = 0; i < count && *found < max; ++i) {
    if (host_.function(abi::HardwareDevice_Type)(devices[i]) != abi::OrtHardwareDeviceType_CPU) {
      continue;
    }
    const Status status = host_.taken(host_.provider_function(abi::CreateEpDevice)(
        this, devices[i], nullptr, nullptr, &made[*found]));
    if (!status) return Error(status.error());
    ++*found;
  }
  return {};
}

Result<Runtime> Factory::runtime_of(const Options& options) {
  const std::lock_guard lock(mutex_);
  const auto at = runtimes_.find({options.isa, options.perf_map});
  if (at != runtimes_.end()) return at->second;
  Result<Runtime> runtime =
      Runtime::create({.tier = options.isa, .observe = {.perf_map = options.perf_map}});
  if (runtime) runtimes_.emplace(std::pair(options.isa, options.perf_map), *runtime);
  return runtime;
}

Status Factory::make_provider(const abi::OrtSessionOptions* session, const abi::OrtLogger* logger,
                              abi::OrtEp** made) {
  *made = nullptr;
  const Result<Options> options = read_options(host_, session);
  if (!options) return options.error();
  const Result<Runtime> runtime = runtime_of(*options);
  if (!runtime) return runtime.error();
  *made = new Provider(host_, logger, *options, *runtime);
  return {};
}

}  // namespace

}  // namespace castor::onnxruntime

using castor::onnxruntime::Factory;
using castor::onnxruntime::Host;
namespace abi = castor::onnxruntime::abi;

extern "C" {

/// Called once when the library is registered.
__attribute__((visibility("default"))) abi::OrtStatus* CreateEpFactories(
    const char*, const abi::OrtApiBase* base, const abi::OrtLogger*, abi::OrtEpFactory** factories,
    size_t max_factories, size_t* num_factories) {
  *num_factories = 0;
  const auto host = Host::negotiate(base);
  if (!host) {
    // The first version's table has had this function ever since.
    const abi::OrtApi* oldest = base->GetApi(1);
    return abi::at(oldest, abi::CreateStatus)(abi::ORT_FAIL, host.error().message.c_str());
  }
  return castor::onnxruntime::guarded(*host, [&]() -> castor::Status {
    if (max_factories == 0) {
      return castor::Error(castor::ErrorCode::invalid_argument, "there is no room for a factory");
    }
    factories[0] = new Factory(*host);
    *num_factories = 1;
    return {};
  });
}

/// Called once when the library is unregistered, after the last session has gone.
__attribute__((visibility("default"))) abi::OrtStatus* ReleaseEpFactory(
    abi::OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}

}  // extern "C"
