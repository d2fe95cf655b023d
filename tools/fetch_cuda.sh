#!/usr/bin/env bash
# Installs the compiler of CUDA 13.0 and its headers from PyPI into build/cuda-toolkit, for machines
# without one: wheels of NVIDIA in fixed versions. Nothing calls this script; delete the folder to
# undo it. The preset `cuda` finds the compiler there when none is on the path.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
target=$root/build/cuda-toolkit
python3 -m pip install --no-deps --only-binary :all: --upgrade --target "$target" \
  nvidia-cuda-nvcc==13.0.88 \
  nvidia-nvvm==13.0.88 \
  nvidia-cuda-crt==13.0.88 \
  nvidia-cuda-runtime==13.0.96 \
  nvidia-cuda-cccl==13.0.85
chmod +x "$target"/nvidia/cu13/bin/* "$target"/nvidia/cu13/nvvm/bin/*
"$target"/nvidia/cu13/bin/nvcc --version | tail -n 2
