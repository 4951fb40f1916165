"""A toolchain, a kernel's source and a kernel that are shell scripts, to be broken at will."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path

from jostle.kernel_images import config, source_patches

VERSION = "6.1.99"

# Each program reads what it shall do from a file beside it.
_MAKE = """\
#!/bin/sh
here=${0%/*}; PATH=/usr/bin:/bin
echo "make $*" >>"$here/calls"
mode=$(cat "$here/mode")
case "$2" in
defconfig) echo "CONFIG_UML=y" >.config ;;
olddefconfig) [ "$mode" = refuse ] && sed -i 's/^CONFIG_IFB=y$//' .config ;;
linux)
  for n in 1 2 3; do echo "  CC      net/file$n.o"; done
  case "$mode" in
  broken) echo "net/file3.c:7: error: expected ';'"; echo "make: *** [net] Error 1"; exit 2 ;;
  empty) exit 0 ;;
  hang) echo "  CC      net/hang.o"; sleep 300 & sleep 300 ;;
  esac
  echo "  LINK linux"
  echo "0x0 tcp_reno_ssthresh" >vmlinux.symvers
  cp "$here/kernel" linux; chmod +x linux ;;
net/sched/jostle/tcp_bbr_415.o) [ "$mode" = no-copy ] && { echo "error: min_tso_segs"; exit 2; } ;;
esac
exit 0
"""

# Knows the packages beside it, whose digest it lists, and downloads them.
_APT_GET = """\
#!/bin/sh
here=${0%/*}; PATH=/usr/bin:/bin
echo "$*" >>"$here/apt"
[ "$1" = download ] || exit 0
cp "$here"/repository/linux-source-6.1_*.deb . && exit 0
echo "E: Failed to fetch the package"; exit 100
"""
_APT_CACHE = """\
#!/bin/sh
here=${0%/*}; PATH=/usr/bin:/bin
cat "$here/recorded"
"""
# A package is a plain tar file here.
_DPKG_DEB = """\
#!/bin/sh
PATH=/usr/bin:/bin
mkdir -p "$3" && tar --extract --file "$2" --directory "$3"
"""

# Does what run_guest sees of a guest: runs nothing, but tells the end of init's program.
KERNEL = """\
#!/bin/sh
PATH=/usr/bin:/bin
[ "$1" = --version ] && { echo VERSION; exit 0; }
for word; do case "$word" in init=*) init=${word#init=} ;; esac; done
token=$(sed -n 's/^echo "\\(jostle-guest-ended-[0-9a-f]*\\) .*/\\1/p' "$init")
BEHAVIOUR
echo "$token 0"
"""
_GOOD = """\
echo "version Linux version VERSION"
echo "controllers reno CONTROLLERS"
echo "before 0.50"
echo "after 1800.51"
echo "random 0b7e"
"""


def kernel_script(behaviour: str = _GOOD, version: str = VERSION) -> str:
    """Text of a program that looks like a User-Mode Linux from outside."""
    text = KERNEL.replace("BEHAVIOUR", behaviour)
    return text.replace("VERSION", version).replace(
        "CONTROLLERS", " ".join([*config.CONTROLLERS, *source_patches.COPIES])
    )


def edited_files() -> dict[str, str]:
    """Files with the texts that edits replace, and nothing else."""
    found: dict[str, str] = {}
    copied = (edit for _, changes in source_patches.COPIES.values() for edit in changes)
    for edit in (*source_patches.EDITS, *copied):
        text = found.get(edit.file, "")
        found[edit.file] = text if edit.before in text else text + edit.before
    return found


def write_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@dataclass(frozen=True)
class FakeToolchain:
    """Programs in a folder that is all of PATH, and a source tarball."""

    programs: Path
    sources: Path

    @property
    def tarball(self) -> Path:
        return self.sources / "linux-source-6.1.tar.xz"

    @property
    def package(self) -> Path:
        return self.programs / "repository" / f"linux-source-6.1_{VERSION}-1_all.deb"

    @property
    def apt_calls(self) -> list[str]:
        file = self.programs / "apt"
        return file.read_text().splitlines() if file.exists() else []

    def publish(self) -> None:
        """Make a package of the tarball, and record its digest in the lists."""
        self.package.parent.mkdir(exist_ok=True)
        with tarfile.open(self.package, "w") as package:
            package.add(self.tarball, "usr/src/linux-source-6.1.tar.xz")
        digest = hashlib.sha256(self.package.read_bytes()).hexdigest()
        (self.programs / "recorded").write_text(
            f"Package: linux-source-6.1\nVersion: {VERSION}-1\nSHA256: {digest}\n"
        )

    @property
    def calls(self) -> list[str]:
        file = self.programs / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def make(self, mode: str) -> None:
        """Let make be `good`, `broken`, `refuse`, `empty` or `hang`."""
        (self.programs / "mode").write_text(mode)

    def kernel(self, behaviour: str) -> None:
        """Let the compiled kernel do this instead of booting."""
        (self.programs / "kernel").write_text(kernel_script(behaviour))

    def source(
        self, version: str = VERSION, architecture: str = "um", without: str | None = None
    ) -> None:
        """Write the tarball and its package anew, without a text if one is given."""
        major, minor, patch = version.split(".")
        files = {
            "Makefile": f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {patch}\n",
            f"arch/{architecture}/Kconfig": "",
            "net/sched/Makefile": "obj-y := sch_generic.o\n",
        }
        for file, text in edited_files().items() if architecture == "um" else ():
            files[file] = files.get(file, "") + (text.replace(without, "") if without else text)
        with tarfile.open(self.tarball, "w:xz") as tar:
            for name, text in files.items():
                member = tarfile.TarInfo(f"linux-source-6.1/{name}")
                member.size = len(text)
                tar.addfile(member, io.BytesIO(text.encode()))
        self.publish()


def fake_toolchain(folder: Path) -> FakeToolchain:
    """Make a toolchain that works."""
    programs, sources = folder / "programs", folder / "src"
    programs.mkdir()
    sources.mkdir()
    for name in ("tar", "xz"):
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    for name in ("flex", "bison", "bc", "ld"):
        write_program(programs / name, "#!/bin/sh\n")
    write_program(programs / "gcc", "#!/bin/sh\necho 'gcc (Fake) 1.2.3'\n")
    write_program(programs / "make", _MAKE)
    write_program(programs / "apt-get", _APT_GET)
    write_program(programs / "apt-cache", _APT_CACHE)
    write_program(programs / "dpkg-deb", _DPKG_DEB)
    (programs / "kernel").write_text(kernel_script())
    fake = FakeToolchain(programs, sources)
    fake.make("good")
    fake.source()
    return fake
