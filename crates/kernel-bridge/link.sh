#!/bin/sh
# Compiles a package for the kernel and links it into one object: link.sh FILE.o [PACKAGE FOLDER]
# PACKAGE, in FOLDER, is this one, or one that exports a user's controllers (`export!`).
#
# Link-time optimisation compiles `core` and `alloc` too, without the relocations of a shared object
# (GOTPCREL), which the kernel's loader of modules does not know. The kernel's code can be anywhere in
# memory (code-model=large). The processor is fixed, so that results do not depend on the machine.
set -eu
out=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
package=${2:-jostle-kernel-bridge}
name=$(echo "$package" | tr - _)
triple=x86_64-unknown-linux-gnu
target=${CARGO_TARGET_DIR:-$here/../../target}
cd "${3:-$here}"
# With --target, the flags do not reach macros, which are shared objects of the host.
RUSTFLAGS='-C relocation-model=static -C code-model=large -C target-cpu=x86-64' \
  cargo rustc --quiet --locked --package "$package" --no-default-features --features kernel \
  --profile kernel --target $triple --crate-type staticlib --target-dir "$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ar x "$target/$triple/kernel/lib$name.a"
own=$(ls "$name"*.o)
readelf --syms --wide "$own" | awk '$5 == "GLOBAL" && $7 != "UND" && $8 ~ /^jk_/ { print $8 }' >symbols
# An old plugin of binutils may complain about the bitcode of compiler_builtins, which is not needed.
ld -r --gc-sections $(sed 's/^/-u /' symbols) -T "$here/bridge.lds" -o bridge.o "$own" compiler_builtins*.o \
  2>messages || { cat messages >&2; exit 1; }
objcopy --keep-global-symbols=symbols bridge.o 2>>messages || { cat messages >&2; exit 1; }
mkdir -p "$(dirname "$out")"
mv bridge.o "$out"
