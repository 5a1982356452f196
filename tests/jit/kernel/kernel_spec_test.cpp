// SPDX-License-Identifier: Apache-2.0
// Specs of kernels: every field is in the key, in equality and in the name, and a list of fields
// that is not complete is told apart when it is compiled.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "jit/emit/nest_emitter.hpp"
#include "jit/kernel/spec_key.hpp"
#include "jit/kernel/spec_words.hpp"
#include "tests/support/golden_spec.hpp"

namespace castor::jit {
namespace {

// ---- lists that do not compile in a key

struct Complete {
  int a = 0;
  std::vector<int> b{};
  std::optional<int> c{};
  static constexpr auto fields(const auto& list) {
    return list(field("a", &Complete::a), field("b", &Complete::b), not_in_code(&Complete::c));
  }
};
struct WithoutOne {
  int a = 0;
  int b = 0;
  static constexpr auto fields(const auto& list) { return list(field("a", &WithoutOne::a)); }
};
struct OneTwice {
  int a = 0;
  int b = 0;
  static constexpr auto fields(const auto& list) {
    return list(field("a", &OneTwice::a), field("b", &OneTwice::a));
  }
};
struct WithoutFirst {
  std::vector<int> a{};
  bool b = false;
  static constexpr auto fields(const auto& list) { return list(field("b", &WithoutFirst::b)); }
};
static_assert(lists_every_member<Complete>());
static_assert(!lists_every_member<WithoutOne>());
static_assert(!lists_every_member<OneTwice>());
static_assert(!lists_every_member<WithoutFirst>());

// ---- one field changed at a time

template <class T>
void change(T& value);

/// Another value of each type that fields have.
template <class T>
T changed(T value) {
  if constexpr (HasFields<T>) {
    for_each_field(value, [](std::string_view, auto& part) { change(part); });
    return value;
  } else if constexpr (requires { value.emplace_back(); }) {
    value.emplace_back();
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return !value;
  } else if constexpr (std::is_class_v<T>) {
    auto* const bytes = reinterpret_cast<unsigned char*>(&value);
    ++bytes[sizeof(T) - 1];
    return value;
  } else {
    return static_cast<T>(static_cast<int>(value) + 1);
  }
}
template <class T>
void change(T& value) {
  value = changed(value);
}

/// Calls `visit(word, spec)` with `spec` after each way to change one of its fields: also to add an
/// element to a list, and to change one field of a list's element.
template <class T, class Visit>
void for_each_change(const T& spec, const std::string& path, const Visit& visit) {
  const auto vary = [&]<class Value>(const SpecField<T, Value>& field) {
    const std::string word = path + std::string(field.word);
    T other = spec;
    if constexpr (HasFields<Value>) {
      for_each_change(spec.*field.member, word + '.', [&](const std::string& inner, Value value) {
        other.*field.member = std::move(value);
        visit(inner, other);
      });
    } else {
      change(other.*field.member);
      visit(word, other);
      if constexpr (requires { (other.*field.member).front(); }) {
        using Element = typename Value::value_type;
        if constexpr (HasFields<Element>) {
          for_each_change(Element{}, word + "[0].", [&](const std::string& inner, Element element) {
            other.*field.member = {std::move(element)};
            visit(inner, other);
          });
        }
      }
    }
  };
  const auto vary_listed = [&]<class Listed>(const Listed& listed) {
    if constexpr (requires { listed.word; }) vary(listed);
  };
  T::fields([&](const auto&... listed) { (vary_listed(listed), ...); });
}

constexpr Target target{Tier::avx512};

/// By key, what it is the key of.
class Keys {
 public:
  void add(const std::string& what, std::string key) {
    const auto [at, is_new] = owners_.emplace(std::move(key), what);
    EXPECT_TRUE(is_new) << what << " and " << at->second << " have one key";
  }
  size_t count() const { return owners_.size(); }

 private:
  std::map<std::string, std::string> owners_;
};

template <class Spec>
void add_changes(Keys& keys) {
  const Spec standard{};
  keys.add(std::string(Spec::name), kernel_key(standard, target));
  keys.add(std::string(Spec::name) + " of another tier", kernel_key(standard, {Tier::avx2}));
  Target elsewhere = target;
  elsewhere.core = Core::zen5;
  elsewhere.caches = {.l1 = 48 << 10, .l2 = 2 << 20};
  EXPECT_EQ(kernel_key(standard, target), kernel_key(standard, elsewhere)) << Spec::name;
  EXPECT_TRUE(standard == Spec{});
  for_each_change(standard, std::string(Spec::name) + ' ', [&](const std::string& what, Spec spec) {
    keys.add(what, kernel_key(spec, target));
    EXPECT_FALSE(spec == standard) << what;
    EXPECT_EQ(kernel_key(spec, target), kernel_key(Spec(spec), target)) << what;
  });
}

template <class Visit, size_t... index>
void for_each_spec(std::index_sequence<index...>, const Visit& visit) {
  (visit(std::variant_alternative_t<index, test::KernelSpec>{}), ...);
}
template <class Visit>
void for_each_spec(const Visit& visit) {
  for_each_spec(std::make_index_sequence<std::variant_size_v<test::KernelSpec>>(), visit);
}

TEST(KernelSpec, EveryFieldIsInTheKey) {
  Keys keys;
  for_each_spec([&]<class Spec>(const Spec&) { add_changes<Spec>(keys); });
  EXPECT_GT(keys.count(), 60u);
}

TEST(KernelSpec, NamesDiffer) {
  std::set<std::string_view> names = {NestSpec::name};
  for_each_spec([&]<class Spec>(const Spec&) {
    EXPECT_TRUE(names.insert(Spec::name).second) << Spec::name;
    EXPECT_EQ(Spec::name.find('\0'), std::string_view::npos);
  });
}

TEST(KernelSpec, EveryFieldOfAnEpilogueIsInTheKey) {
  Keys keys;
  const DenseTile tile;
  keys.add("no epilogue", kernel_key(tile, target));
  keys.add("a default epilogue", kernel_key(tile, target, std::make_unique<TileEpilogue>().get()));
  for_each_change(TileEpilogue{}, "", [&](const std::string& what, const TileEpilogue& epilogue) {
    keys.add(what, kernel_key(tile, target, &epilogue));
  });
  EXPECT_GE(keys.count(), 20u);
}

TEST(KernelSpec, EveryFieldOfANestIsInTheKey) {
  Keys keys;
  const Nest nest;
  const NestForm form;
  keys.add("nest", kernel_key(NestSpec{&nest, &form}, target));
  for_each_change(nest, "", [&](const std::string& what, const Nest& other) {
    keys.add(what, kernel_key(NestSpec{&other, &form}, target));
  });
  for_each_change(form, "", [&](const std::string& what, const NestForm& other) {
    keys.add(what, kernel_key(NestSpec{&nest, &other}, target));
  });
  EXPECT_GE(keys.count(), 20u);
}

TEST(KernelSpec, KeysLeaveOutWhatCodeDoesNotDependOn) {
  Nest nest;
  nest.program.code.emplace_back();
  Nest other = nest;
  other.space = 7;
  other.inputs.emplace_back(ValueId{3});
  other.convolution = 1;
  other.method = "linear";
  other.program.code[0].origin = 5;
  const NestForm form;
  EXPECT_EQ(kernel_key(NestSpec{&nest, &form}, target),
            kernel_key(NestSpec{&other, &form}, target));
}

TEST(KernelSpec, ListsAreDelimited) {
  DepthwiseSpec one;
  one.ranges.resize(1);
  DepthwiseSpec two = one;
  two.ranges.resize(2);
  const std::string key = kernel_key(one, target);
  EXPECT_NE(kernel_key(two, target).substr(0, key.size()), key);
}

// ---- words

TEST(KernelSpec, EveryScalarFieldIsInTheName) {
  std::map<std::string, std::string> names;  // with what they are of
  for_each_spec([&]<class Spec>(const Spec&) {
    const auto add = [&](const std::string& what, const Spec& spec) {
      const SpecWords words = spec_words(spec);
      if (!words.has_full_short_name()) return;
      const auto [at, is_new] = names.emplace(short_name(words), what);
      EXPECT_TRUE(is_new) << what << " and " << at->second << " are both " << at->first;
    };
    add("default", Spec{});
    for_each_change(Spec{}, std::string(Spec::name) + ' ', add);
  });
  EXPECT_GT(names.size(), 50u);
}

TEST(KernelSpec, WordsAreThoseOfGoldenListings) {
  const std::string head = "depthwise filter_rows=3 row_stride=2 sign_flip";
  Result<test::KernelSpec> spec = test::read_kernel_spec(head);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  ASSERT_TRUE(test::read_blocks("outputs=4 above=1, outputs=2", *spec).ok());
  const SpecWords words = spec_words(std::get<DepthwiseSpec>(*spec));
  EXPECT_EQ(text_of(words), "  kernel: " + head + "\n  blocks: outputs=4 above=1, outputs=2\n");
  EXPECT_EQ(short_name(words), "depthwise_filter_rows3_row_stride2_sign_flip");
  EXPECT_FALSE(words.has_full_short_name());
  for (const char* wrong :
       {"depthwise rows=3", "depthwise blocks", "depthwise adds=1", "depthwise k_groups",
        "depthwise k_groups=x", "dense window_sums=i8", "tile"}) {
    EXPECT_FALSE(test::read_kernel_spec(wrong).ok()) << wrong;
  }
}

TEST(KernelSpec, WordsLeaveDefaultsOut) {
  EXPECT_EQ(short_name(spec_words(DenseTile{})), "dense");
  const DenseTile tile{
      .channels = 4, .window_sums = WindowSums::i16_pairs, .store = StorePolicy::compressed};
  EXPECT_EQ(short_name(spec_words(tile)), "dense_channels4_window_sums_i16_pairs_store_compressed");
}

}  // namespace
}  // namespace castor::jit
