// Macros that return a status to the caller.
#ifndef EMBANK_BASE_STATUS_MACROS_H_
#define EMBANK_BASE_STATUS_MACROS_H_

// Returns from the function when `expression` (a Status) is not OK.
#define EMBANK_RETURN_IF_ERROR(expression)                          \
  do {                                                              \
    if (auto status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define EMBANK_CONCAT_INNER(a, b) a##b
#define EMBANK_CONCAT(a, b) EMBANK_CONCAT_INNER(a, b)

// Declares or assigns `left` from `expression` (a StatusOr), or returns its status.
#define EMBANK_ASSIGN_OR_RETURN(left, expression) \
  EMBANK_ASSIGN_OR_RETURN_INNER(EMBANK_CONCAT(result_, __LINE__), left, expression)
#define EMBANK_ASSIGN_OR_RETURN_INNER(result, left, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return result.status();                     \
  left = *std::move(result)

#endif  // EMBANK_BASE_STATUS_MACROS_H_
