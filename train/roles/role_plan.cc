#include "train/roles/role_plan.h"

#include <bit>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {

std::string TextOf(RoleAddress role) {
  switch (role.kind) {
    case RoleKind::kLoader:
      return StrCat("loader ", role.number);
    case RoleKind::kEmbeddingWorker:
      return StrCat("embedding worker ", role.number);
    case RoleKind::kNnWorker:
      return StrCat("NN worker ", role.number);
    case RoleKind::kTrainer:
      return "trainer";
  }
  return "";
}

std::vector<RoleAddress> RolePlan::All(RoleKind kind, uint32_t count) {
  std::vector<RoleAddress> roles;
  for (uint32_t i = 0; i < count; ++i) roles.push_back({kind, static_cast<uint16_t>(i)});
  return roles;
}

std::vector<RoleAddress> RolePlan::Roles() const {
  std::vector<RoleAddress> roles = Loaders();
  for (const auto& kind : {EmbeddingWorkers(), NnWorkers()}) {
    roles.insert(roles.end(), kind.begin(), kind.end());
  }
  roles.push_back({RoleKind::kTrainer, 0});
  return roles;
}

Status Validate(const RolePlan& plan) {
  const struct {
    const char* name;
    uint32_t count;
  } kinds[] = {{"loaders", plan.loaders},
               {"embedding workers", plan.embedding_workers},
               {"NN workers", plan.nn_workers}};
  for (const auto& kind : kinds) {
    if (kind.count > 0 && kind.count <= RolePlan::kRolesMax) continue;
    return InvalidArgumentError(StrCat("roles: there are ", kind.count, " ", kind.name,
                                       "; there must be 1 to ", RolePlan::kRolesMax));
  }
  if (plan.embedding_workers > plan.slices) {
    return InvalidArgumentError(StrCat("roles: there are ", plan.embedding_workers,
                                       " embedding workers for ", plan.slices,
                                       " slices of a batch; each must have one"));
  }
  if (plan.slices % plan.nn_workers != 0 || !std::has_single_bit(plan.slices / plan.nn_workers)) {
    return InvalidArgumentError(StrCat("roles: there are ", plan.nn_workers, " NN workers for ",
                                       plan.slices,
                                       " slices of a batch; slices / NN workers must "
                                       "be 1, 2, 4 or another power of two"));
  }
  const uint64_t most = plan.batch * RolePlan::kBufferedBatchesMax;
  if (plan.buffer_samples > most) {
    return InvalidArgumentError(StrCat("buffer of samples: it holds ", plan.buffer_samples,
                                       "; it must hold at most ", RolePlan::kBufferedBatchesMax,
                                       " batches, which have ", most));
  }
  if (plan.buffer_samples >= plan.batch) return OkStatus();
  return InvalidArgumentError(StrCat("buffer of samples: it holds ", plan.buffer_samples,
                                     "; it must hold a batch, which has ", plan.batch));
}

}  // namespace embank
