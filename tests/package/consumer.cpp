// SPDX-License-Identifier: Apache-2.0
// Uses the C++ interface as an engine does: text and builder, compile, bind, run.
#include <castor/castor.hpp>
#include <cstdio>

int main() {
  const castor::Result<castor::Runtime> runtime = castor::Runtime::create();
  if (!runtime) return 1;
  castor::FunctionBuilder builder("twice");
  const castor::TensorType type{castor::ElementType::f32, castor::Shape{castor::Dim::any()}};
  const castor::ValueId x = builder.parameter("x", type);
  builder.result(builder.binary(castor::OpKind::add, x, x));
  const castor::Result<castor::FunctionPtr> function = builder.finish();
  if (!function) return 2;
  const castor::Result<castor::FunctionPtr> again =
      castor::parse_function(castor::print(**function));
  if (!again || !castor::same_computation(**function, **again)) return 3;
  const castor::Result<castor::Kernel> kernel = runtime->compile(*again);
  if (!kernel) return 4;
  const castor::Result<castor::BoundKernel> bound = kernel->bind({castor::Dims{3}});
  if (!bound) return 5;
  const float source[3] = {1, 2, 3};
  float result[3] = {};
  const castor::ConstView input(source, castor::ElementType::f32, {3}, sizeof source);
  const castor::View output(result, castor::ElementType::f32, {3}, sizeof result);
  if (!bound->run({&input, 1}, {&output, 1})) return 6;
  const castor::Status wrong = bound->run({}, {&output, 1});
  if (wrong || wrong.error().to_string().empty()) return 7;
  std::printf("castor %s: %g %g %g\n", castor::version().data(), result[0], result[1], result[2]);
  return 0;
}
