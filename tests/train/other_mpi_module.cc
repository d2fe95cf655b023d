// A module like libembank_mpi.so of another build, which mpi_module_test opens.
#include "train/ranks/mpi_module_call.h"

extern "C" __attribute__((visibility("default"))) void embank_mpi_open(
    embank::MpiModuleCall* call) {
  call->module_build = "exchange 0 of another house";
}
