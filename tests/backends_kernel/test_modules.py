"""Controllers of the user inside Linux: modules from source to run."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jostle.backends import SimBackend
from jostle.backends.kernel import KernelBackend, capabilities, job, kernel_controllers
from jostle.backends.kernel.controllers import Defaults
from jostle.backends.kernel.module_trial import try_out
from jostle.backends.kernel.runner import KernelRunError
from jostle.cli import status
from jostle.errors import InputError
from jostle.gym import EpisodeSampler
from jostle.inference.run_context import spec_from_run
from jostle.kernel_images import Image, module_build
from jostle.kernel_images.controller_modules import (
    ControllerModule,
    KernelController,
    kernel_controller,
    publish,
)
from jostle.kernel_images.module_build import ModuleError
from jostle.runner.job import CancelFlag, Job
from jostle.runner.spec_texts import SingleSpec
from jostle.safe_io import code_consent
from jostle.safe_io.code_consent import ConsentError, admit
from jostle.scenario import ScenarioError, load_text

ROOT = Path(__file__).parents[2]
MINE = ROOT / "examples" / "tcp_mine.c"
BEFORE_INIT = Path(__file__).parent / "modules" / "tcp_before_init.c"
SCENARIO = """
duration = "4 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = CONTROLLER
rtt = "20 ms"
"""
OTHER = '[[flows]]\nname = "two"\ncontroller = CONTROLLER\nrtt = "30 ms"\n'
ANY = '"kernel:mine"'


def scenario_text(*controllers: str, more: str = "") -> str:
    first, *others = controllers or (ANY,)
    text = SCENARIO.replace("CONTROLLER", first) + more
    return text + "".join(OTHER.replace("CONTROLLER", other) for other in others)


def spec_of(*controllers: str, more: str = "") -> Any:
    text = scenario_text(*controllers, more=more)
    return load_text(text, allow_code=True).plan(repeats=1).runs[0].spec


@pytest.fixture(scope="session")
def mine(kernel: Image) -> ControllerModule:
    """The example, compiled once, with its manifest."""
    compiled = module_build.compile_module(MINE, kernel, lambda _line: None)
    return compiled.named("mine", "mine", ["mine"])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without modules, and nothing that another test has allowed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(code_consent, "_admitted", {})
    return tmp_path / "cache" / "jostle"


@pytest.fixture
def stored(mine: ControllerModule, cache: Path) -> ControllerModule:
    """The example in the cache."""
    publish(mine)
    return mine


def changed(module: ControllerModule, **facts: object) -> ControllerModule:
    return dataclasses.replace(module, facts={**module.facts, **facts})


def test_from_source_to_figure(
    kernel: Image,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The Makefile beside a single file is ignored.
    (tmp_path / "Makefile").write_text("$(error nobody asked for this)\n")
    source = tmp_path / "my controller.c"
    source.write_text(MINE.read_text())
    monkeypatch.setenv("JOSTLE_KERNEL", str(kernel.path))
    monkeypatch.chdir(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert status(["setup", "module", str(source)]) == 0
    said = capsys.readouterr().out
    assert "registers   mine\nparameters  decrease (int), increase (int)\nlicence     GPL\n" in said
    assert "short flow  9.8" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "cache"])
    ((module,),) = [kernel_controller("mine").modules]
    assert module.facts["kernel"] == {"version": kernel.version, "sha256": kernel.digest}
    assert module.facts["sha256"] == hashlib.sha256(module.content).hexdigest()
    assert module.facts["source"]["file"] == str(source)
    assert "jostle-" in module.facts["vermagic"]
    assert status(["setup", "status", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["modules"]
    assert listed["name"] == "mine"
    (tmp_path / "mine.toml").write_text(scenario_text(ANY, '"cubic"'))
    words = ["run", "mine.toml", "--backend", "kernel", "--allow-code", "-o", "report.html"]
    assert status(words) == 0
    capsys.readouterr()
    assert status(words[:-2]) == 0
    assert "1 of 1 run is in the store" in capsys.readouterr().err
    # Another source is another run.
    source.write_text(MINE.read_text().replace("increase = 2;", "increase = 3;"))
    assert status(["setup", "module", str(source)]) == 0
    capsys.readouterr()
    assert status(words[:-2]) == 0
    assert "is in the store" not in capsys.readouterr().err


def test_parameters_reach_the_module(
    kernel: Image, backend: KernelBackend, stored: ControllerModule
) -> None:
    def cwnd_bytes(controller: str) -> float:
        record = backend.run(spec_of(controller))
        phases: Any = record.summary["flows"][0]["phases"]
        return float(phases["overall"]["cwnd_mean_bytes"])

    usual = cwnd_bytes(ANY)
    assert cwnd_bytes('{ name = "kernel:mine", increase = 2, decrease = 70 }') == usual
    assert cwnd_bytes('{ name = "kernel:mine", decrease = 30 }') < 0.9 * usual


@pytest.mark.parametrize(
    "more",
    [
        'source = { kind = "fixed", size = "20 kB" }\narrivals = { rate = "5 /s" }\n',
        "ecn = true\n",
        "receive_window_autotuning = true\n",
    ],
)
def test_other_settings_of_flows(
    kernel: Image, backend: KernelBackend, stored: ControllerModule, more: str
) -> None:
    record = backend.run(spec_of(more=more))
    assert record.summary["flows"][0]["phases"]["overall"]["throughput_bps"] > 5e5
    assert f"mine-{stored.facts['sha256'][:12]}" in record.backend_version


def test_both_ends_have_it_with_ecn(
    kernel: Image, defaults: Defaults, stored: ControllerModule
) -> None:
    with_ecn, without = (
        job.build(spec_of(more=more), kernel, defaults)["flows"][0] for more in ("ecn = true\n", "")
    )
    assert with_ecn["receiver_controller"] == "mine"
    assert without["receiver_controller"] is None


@pytest.mark.parametrize(
    ("controllers", "message"),
    [
        (['{ name = "kernel:mine", incraese = 1 }'], r"no such parameter: increase"),
        (['{ name = "kernel:mine", increase = 0.5 }'], r"whole numbers or texts"),
        (['{ name = "kernel:mine", increase = \'a"b\' }'], r"cannot read this text"),
        (['"kernel:cubic"'], r"Linux's own here, and no module: write \"cubic\""),
        (['"kernel:absent"'], r"`jostle setup module FILE.c --name absent`"),
        (
            [ANY, '{ name = "kernel:mine", increase = 1 }'],
            r"flows.two.controller: all flows of a run share a module's parameters",
        ),
        ([ANY, '"kernel:twin"'], r"registers `mine`, and so does that of one"),
    ],
)
def test_what_a_run_cannot_have(
    backend: KernelBackend, stored: ControllerModule, controllers: list[str], message: str
) -> None:
    publish(changed(stored, name="twin"))
    with pytest.raises(InputError, match=message):
        backend.check(spec_of(*controllers))


def test_values_of_another_type_are_refused_by_the_kernel(
    backend: KernelBackend, stored: ControllerModule
) -> None:
    spec = spec_of('{ name = "kernel:mine", increase = "many" }')
    with pytest.raises(KernelRunError, match=r"no value of its type .*invalid for parameter"):
        backend.run(spec)


def test_a_module_for_another_kernel_is_refused_before_the_guest(
    kernel: Image, backend: KernelBackend, mine: ControllerModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = {"version": kernel.version, "sha256": "0" * 64}
    publish(changed(mine, kernel=elsewhere))
    spec = spec_of()
    monkeypatch.setattr("jostle.backends.kernel.backend.run_job", None)
    with pytest.raises(InputError, match=rf"only for {kernel.version} of another build"):
        backend.run(spec)


def test_the_kernel_refuses_a_module_of_another_build(
    backend: KernelBackend, mine: ControllerModule
) -> None:
    # Someone has changed the manifest: the version magic of the module still has its build.
    start = mine.content.index(b"jostle-") + len(b"jostle-")
    content = mine.content[:start] + b"0123456789ab" + mine.content[start + 12 :]
    digest = hashlib.sha256(content).hexdigest()
    publish(dataclasses.replace(changed(mine, sha256=digest), content=content))
    message = r"compiled for another kernel .*version magic .*jostle-0123456789ab"
    with pytest.raises(KernelRunError, match=message):
        backend.run(spec_of())


def test_a_module_that_was_changed_is_refused(stored: ControllerModule, cache: Path) -> None:
    (file,) = cache.glob("modules/*/module.ko")
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(ScenarioError, match="is not the module that was compiled"):
        spec_of()


def test_the_module_is_a_part_of_the_identity(
    backend: KernelBackend, stored: ControllerModule
) -> None:
    spec = spec_of()
    first = backend.version_of(spec)
    assert first == f"{backend.version}+mine-{stored.facts['sha256'][:12]}"
    assert backend.version_of(spec_of('"cubic"')) == backend.version
    content = stored.content + b"\0"
    digest = hashlib.sha256(content).hexdigest()
    publish(dataclasses.replace(changed(stored, sha256=digest), content=content))
    assert backend.version_of(spec_of()) != first


def test_workers_get_the_module_with_the_job(
    kernel: Image, backend: KernelBackend, stored: ControllerModule, tmp_path: Path
) -> None:
    stop = CancelFlag()
    sent = tmp_path / "job"
    sent.write_bytes(pickle.dumps(Job.of(backend, None, [(SingleSpec(spec_of()), 1)], stop)))
    program = (
        "import pickle, sys; job = pickle.loads(open(sys.argv[1], 'rb').read()); "
        "(one,) = job().done; assert one.error is None, one.error; "
        "print(one.record.backend_version)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(sent)],
        env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "nothing")},
        capture_output=True,
        text=True,
        check=False,
    )
    stop.close()
    assert done.stdout.strip() == backend.version_of(spec_of()), done.stderr


def test_a_specification_alone_runs_nothing(
    backend: KernelBackend, stored: ControllerModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of()
    monkeypatch.setattr(code_consent, "_admitted", {})
    for use in (backend.check, backend.version_of, backend.run):
        with pytest.raises(ConsentError, match="the kernel module mine"):
            use(spec)
    with pytest.raises(ScenarioError, match=r"the controller mine \(compiled from .*--allow-code"):
        load_text(scenario_text())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('transport = "quic"\n', r'part of Linux\'s TCP — remove transport = "quic"'),
        ('slow_start = "hystart"\n', "has its own slow start"),
    ],
)
def test_what_a_scenario_cannot_have(more: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        spec_of(more=more)


@pytest.mark.parametrize("name", ["kernel:", "kernel:../x", "kernel:a-name-that-is-long"])
def test_names(name: str) -> None:
    with pytest.raises(ScenarioError, match="names no controller of a kernel"):
        spec_of(f'"{name}"')


def test_the_simulator_refuses_it() -> None:
    spec = spec_of()
    for use in (SimBackend().check, SimBackend().run):
        with pytest.raises(InputError, match="inside a Linux kernel, which the simulator cannot"):
            use(spec)


def test_other_users_of_the_simulator_refuse_it(tmp_path: Path) -> None:
    text = scenario_text('"reno"', ANY)
    with pytest.raises(InputError, match=r"flows.two.controller: .*inside a Linux kernel"):
        EpisodeSampler(load_text(text, allow_code=True), ["one"])
    run: Any = SimpleNamespace(spec=spec_of('"reno"', ANY))
    with pytest.raises(InputError, match=r"flows.two.controller: .*inside a Linux kernel"):
        spec_from_run(run, "one")
    assert spec_from_run(run, "two")["flows"][1]["name"] == "two"


@pytest.mark.parametrize("kind", ["realtime", "native"])
def test_other_kinds_of_kernels_refuse_it(kind: Any, defaults: Defaults) -> None:
    image = Image(kind, Path("/usr/bin/linux.uml"), "6.1.5")
    offer = kernel_controllers.KernelOffer(image)
    with pytest.raises(InputError, match="in virtual time"):
        capabilities.check(spec_of(), defaults, kind, offer)


@pytest.fixture
def renamed_kernel(kernel: Image, cache: Path) -> Image:
    """The kernel as one with changes of the user, without a copy."""
    folder = cache / "kernels" / "mine"
    folder.mkdir(parents=True)
    assert kernel.path is not None
    facts = json.loads(kernel.path.with_name("build.json").read_text())
    facts |= {"name": "mine", "changes": [], "left_out": ["bbr_415"]}
    facts["controllers"] = ["reno", "cubic", "bbr"]
    (folder / "build.json").write_text(json.dumps(facts))
    (folder / "linux").symlink_to(kernel.path)
    return Image("virtual", folder / "linux", kernel.version)


def test_plain_names_never_mean_a_changed_kernel(
    renamed_kernel: Image,
) -> None:
    backend = KernelBackend(image=renamed_kernel)
    with pytest.raises(InputError, match='has changes of yours: write "kernel:bbr"'):
        backend.check(spec_of('"bbr"'))
    with pytest.raises(InputError, match=r"no controller `bbr_415`: .*left out of it was bbr_415"):
        backend.check(spec_of('"kernel:bbr_415"'))
    record = backend.run(spec_of('"kernel:bbr"', '{ name = "kernel:cubic", hystart = 0 }'))
    names = [flow["controller"] for flow in record.summary["flows"]]
    assert names == ["kernel:bbr", "kernel:cubic"]


def test_code_of_before_init_is_named(kernel: Image) -> None:
    compiled = module_build.compile_module(BEFORE_INIT, kernel, lambda _line: None)
    with pytest.raises(ModuleError) as broken:
        try_out(compiled, kernel, None)
    text = str(broken.value)
    first, *rest = text.splitlines()
    assert "with the kernel module `before_init` of yours, the guest kernel broke down" in first
    assert "Kernel panic - not syncing" in first
    assert any("tcp_ack" in line for line in rest[:15])
    assert "the data of the connection are zero then" in rest[-1]


BOTH = """
#include <linux/version.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void mine_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) {}
#else
static void mine_control(struct sock *sk, const struct rate_sample *rs) {}
#endif
"""
OF_6_12 = "static void mine_control(struct sock *sk, u32 ack, int flag, "
OF_6_12 += "const struct rate_sample *rs) {}\n"


def with_control(control: str) -> Callable[[str], str]:
    return lambda text: text.replace("static struct tcp", f"{control}static struct tcp").replace(
        ".cong_avoid = mine_cong_avoid", ".cong_control = mine_control"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_control(OF_6_12), r"tcp_mine.c:\d+:\d+: error: (?s:.)*LINUX_VERSION_CODE"),
        pytest.param(
            lambda text: text.replace('MODULE_LICENSE("GPL");', ""),
            r'add MODULE_LICENSE\("GPL"\)',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda text: text.replace('"GPL"', '"Proprietary"'),
            r'write MODULE_LICENSE\("GPL"\)',
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda text: text.replace(
                "return tcp_register",
                "BUILD_BUG_ON(sizeof(char[600]) > ICSK_CA_PRIV_SIZE); return tcp_register",
            ),
            "which has 512 bytes",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda text: text.replace("return tcp_reg", "tcp_send_loss_probe(0); return tcp_reg"),
            "does not export this function to modules",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda text: text.replace('.name = "mine"', '.name = "cubic"'),
            r"already has a controller .*cubic already registered.*names of the kernel: bbr",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda text: text.replace("tcp_register_congestion_control(&mine)", "-ENOMEM"),
            r"cannot load the module `tcp_mine`: Cannot allocate memory",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda text: text.replace("tcp_register_congestion_control(&mine)", "0").replace(
                "tcp_unregister_congestion_control(&mine);", ""
            ),
            "registered no congestion control: call tcp_register_congestion_control",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_hints(kernel: Image, tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    source = tmp_path / "tcp_mine.c"
    source.write_text(change(MINE.read_text()))
    with pytest.raises(ModuleError, match=message):
        try_out(module_build.compile_module(source, kernel, lambda _line: None), kernel, None)


@pytest.mark.slow
def test_one_source_for_both_signatures(kernel: Image, tmp_path: Path) -> None:
    source = tmp_path / "tcp_mine.c"
    source.write_text(with_control(BOTH)(MINE.read_text()))
    module_build.compile_module(source, kernel, lambda _line: None)


@pytest.mark.slow
def test_a_folder_with_a_makefile(kernel: Image, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    text = MINE.read_text().replace("* decrease / 100", "* mine_share() / 100")
    text = text.replace("static int increase", "int mine_share(void);\n\nstatic int increase")
    (folder / "main.c").write_text(text)
    (folder / "share.c").write_text(
        "int mine_share(void);\n\nint mine_share(void)\n{ return 70; }\n"
    )
    with pytest.raises(ModuleError, match="has 2 C files and no Makefile"):
        module_build.compile_module(folder, kernel, lambda _line: None)
    (folder / "Makefile").write_text("obj-m := tcp_mine.o\ntcp_mine-y := main.o share.o\n")
    compiled = module_build.compile_module(folder, kernel, lambda _line: None)
    assert compiled.facts["module"] == "tcp_mine"
    again = module_build.compile_module(folder, kernel, lambda _line: None)
    assert again.content == compiled.content, "the folder of the build leaves no trace"
    (folder / "Makefile").write_text("obj-m := main.o share.o\n")
    with pytest.raises(ModuleError):
        module_build.compile_module(folder, kernel, lambda _line: None)


@pytest.mark.parametrize(
    ("name", "message"),
    [("absent.c", "there is no file"), ("mine.h", "give a C file"), ("empty", "has 0 C files")],
)
def test_no_source(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.h").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModuleError, match=message):
        module_build.check_source(tmp_path / name)


def test_a_kernel_without_headers(kernel: Image, tmp_path: Path) -> None:
    assert kernel.path is not None
    (tmp_path / "linux").symlink_to(kernel.path)
    image = Image("virtual", tmp_path / "linux", kernel.version)
    with pytest.raises(ModuleError, match="has no headers beside it"):
        module_build.compile_module(MINE, image, lambda _line: None)


def test_a_name_of_its_own(kernel: Image, mine: ControllerModule) -> None:
    compiled = module_build.Compiled(mine.content, dict(mine.facts))
    trial = try_out(compiled, kernel, "second")
    assert (trial.module.name, trial.module.controller) == ("second", "mine")
    publish(trial.module)
    assert isinstance(kernel_controller("second"), KernelController)
    admit(kernel_controller("second"))
