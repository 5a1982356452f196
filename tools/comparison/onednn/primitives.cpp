// SPDX-License-Identifier: Apache-2.0
// Running calls; primitives other than convolutions.
#include "peer.hpp"

using namespace peer;

EXPORTED const char* peer_error() { return last_error.c_str(); }

EXPORTED int peer_version() {
  const dnnl_version_t* const version = dnnl_version();
  return version->major * 10000 + version->minor * 100 + version->patch;
}

EXPORTED int peer_has_queue() { return dnnl_version()->cpu_runtime == DNNL_RUNTIME_SYCL; }

EXPORTED const char* peer_implementation(const void* call) {
  return static_cast<const Call*>(call)->implementation.c_str();
}

/// Runs a call that often, and waits for the last one.
EXPORTED int peer_run(void* call, int times) {
  return guarded([&]() -> void* {
           auto* const made = static_cast<Call*>(call);
           for (int i = 0; i < times; ++i) made->primitive.execute(stream(), made->arguments);
           stream().wait();
           return made;
         }) == nullptr;
}

EXPORTED void peer_destroy(void* call) { delete static_cast<Call*>(call); }

EXPORTED void* peer_reorder(const char* from, const char* to, int64_t count, const void* x,
                            void* y) {
  return guarded([&]() -> void* {
    const memory source = over(described({count}, type_named(from), false), x);
    const memory target = over(described({count}, type_named(to), false), y);
    const dnnl::reorder::primitive_desc description(source, target);
    return new Call{dnnl::reorder(description),
                    {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}},
                    description.impl_info_str()};
  });
}

/// a [rows, depth] times b [depth, columns], to i32.
EXPORTED void* peer_matmul(const char* a_type, const char* b_type, int64_t rows, int64_t depth,
                           int64_t columns, const void* a, const void* b, void* y,
                           int32_t a_zero_point) {
  return guarded([&]() -> void* {
    const memory::desc a_form = described({rows, depth}, type_named(a_type), false);
    const memory::desc b_form = described({depth, columns}, type_named(b_type), false);
    const memory::desc b_any = any_layout({depth, columns}, type_named(b_type));
    const memory::desc y_form = described({rows, columns}, type::s32, false);
    const Quantization q = {1, 1, nullptr, a_zero_point, 0, false, false, columns};
    const dnnl::primitive_attr attributes = attributes_of(q, 2);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine(), a_form, b_any, y_form, attributes);
#else
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a_form, b_any, y_form),
                                                   attributes, engine());
#endif
    auto call = std::make_unique<Call>();
    call->primitive = dnnl::matmul(description);
    call->implementation = description.impl_info_str();
    call->arguments = {{DNNL_ARG_SRC, over(a_form, a)},
                       {DNNL_ARG_WEIGHTS, packed(over(b_form, b), description.weights_desc())},
                       {DNNL_ARG_DST, over(y_form, y)}};
    add_quantization(*call, q);
    return call.release();
  });
}

/// op is "add", "mul" or "sub"; `then`, where it is not null, multiplies the result by a row.
EXPORTED void* peer_binary(const char* op, const char* x_type, const char* y_type,
                           const char* z_type, int64_t rows, int64_t columns, int64_t y_rows,
                           const void* x, const void* y, const float* then, void* z) {
  return guarded([&]() -> void* {
    using kind = dnnl::algorithm;
    const std::string name = op;
    const kind algorithm = name == "add"   ? kind::binary_add
                           : name == "sub" ? kind::binary_sub
                                           : kind::binary_mul;
    const memory::desc x_form = described({rows, columns}, type_named(x_type), false);
    const memory::desc y_form = described({y_rows, columns}, type_named(y_type), false);
    const memory::desc z_form = described({rows, columns}, type_named(z_type), false);
    const memory::desc then_form = described({1, columns}, type::f32, false);
    dnnl::primitive_attr attributes;
    if (then != nullptr) {
      dnnl::post_ops after;
      after.append_binary(kind::binary_mul, then_form);
      attributes.set_post_ops(after);
    }
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::binary::primitive_desc description(engine(), algorithm, x_form, y_form, z_form,
                                                   attributes);
#else
    const dnnl::binary::primitive_desc description(
        dnnl::binary::desc(algorithm, x_form, y_form, z_form), attributes, engine());
#endif
    auto call = std::make_unique<Call>();
    call->primitive = dnnl::binary(description);
    call->implementation = description.impl_info_str();
    call->arguments = {{DNNL_ARG_SRC_0, over(x_form, x)},
                       {DNNL_ARG_SRC_1, over(y_form, y)},
                       {DNNL_ARG_DST, over(z_form, z)}};
    if (then != nullptr) {
      call->arguments.insert(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, over(then_form, then)});
    }
    return call.release();
  });
}

/// min(max(x, low), high) of f32.
EXPORTED void* peer_clip(int64_t count, float low, float high, const void* x, void* y) {
  return guarded([&]() -> void* {
    const memory::desc form = described({count}, type::f32, false);
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto clip = dnnl::algorithm::eltwise_clip;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::eltwise_forward::primitive_desc description(engine(), kind, clip, form, form, low,
                                                            high);
#else
    const dnnl::eltwise_forward::primitive_desc description(
        dnnl::eltwise_forward::desc(kind, clip, form, low, high), engine());
#endif
    return new Call{dnnl::eltwise_forward(description),
                    {{DNNL_ARG_SRC, over(form, x)}, {DNNL_ARG_DST, over(form, y)}},
                    description.impl_info_str()};
  });
}

/// How many primitives oneDNN keeps; 0 makes every creation a cold one.
EXPORTED void peer_set_cache(int primitives) { dnnl::set_primitive_cache_capacity(primitives); }
