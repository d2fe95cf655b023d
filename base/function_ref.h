// A reference to a callable that its caller owns and that outlives the call: for parameters.
#ifndef EMBANK_BASE_FUNCTION_REF_H_
#define EMBANK_BASE_FUNCTION_REF_H_

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace embank {

template <typename Signature>
class FunctionRef;

// Refers to a function object, not to a plain function; allocates nothing and is cheap to copy.
template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  // The object has to live for as long as this is called. Implicit, so that lambdas are passed as
  // they stand; the constraints keep the template from hiding copies.
  // NOLINTBEGIN(google-explicit-constructor,bugprone-forwarding-reference-overload)
  template <typename Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, FunctionRef> &&
           std::is_object_v<std::remove_reference_t<Callable>> &&
           std::is_invocable_r_v<Result, std::remove_reference_t<Callable>&, Arguments...>)
      FunctionRef(Callable&& callable)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_(&Call<std::remove_reference_t<Callable>>) {}
  // NOLINTEND(google-explicit-constructor,bugprone-forwarding-reference-overload)

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  template <typename Callable>
  static Result Call(void* object, Arguments... arguments) {
    return std::invoke(*static_cast<Callable*>(object), std::forward<Arguments>(arguments)...);
  }

  void* object_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace embank

#endif  // EMBANK_BASE_FUNCTION_REF_H_
