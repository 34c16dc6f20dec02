"""go_library collects, go_binary and go_test run the installed Go on a copy of what was collected."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@go_sdk//:sdk.bzl", "MODULES", "SDK")

GoLibraryInfo = provider(
    doc = "The sources of a Go package and all that it needs.",
    fields = {
        "importpath": "import path",
        "files": "depset of source files, embedded files and test files, of this and all packages beneath",
        "cgo": "list of struct(package, compilation_context, linking_context): packages with cdeps",
        "data": "runfiles",
    },
)

def _collect(ctx, importpath):
    libraries = [d[GoLibraryInfo] for d in ctx.attr.embed + ctx.attr.deps if GoLibraryInfo in d]
    cgo = []
    if ctx.attr.cdeps:
        if not ctx.attr.cgo:
            fail("cdeps need cgo = True")
        info = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in ctx.attr.cdeps])
        cgo = [struct(
            package = ctx.label.package,
            compilation_context = info.compilation_context,
            linking_context = info.linking_context,
        )]
    data = ctx.runfiles(files = ctx.files.data)
    for d in ctx.attr.data + ctx.attr.deps + ctx.attr.embed:
        data = data.merge(d[DefaultInfo].default_runfiles)
    return GoLibraryInfo(
        importpath = importpath,
        files = depset(ctx.files.srcs + ctx.files.embedsrcs, transitive = [library.files for library in libraries]),
        cgo = {c.package: c for c in cgo + [c for library in libraries for c in library.cgo]}.values(),
        data = data,
    )

def _flags_of(cgo, linkopts):
    """Returns (input files, compiler flags, linker flags) of one package's cdeps; %ROOT% stands for the exec root."""
    cc = cgo.compilation_context
    cflags = ["-D" + d for d in cc.defines.to_list()]
    for kind, dirs in [("-I", cc.quote_includes), ("-I", cc.includes), ("-isystem", cc.system_includes)]:
        cflags += [kind + "%ROOT%/" + d if kind == "-I" else kind + " %ROOT%/" + d for d in dirs.to_list()]
    archives = []
    whole = []
    flags = []
    for linker_input in cgo.linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            file = library.pic_static_library or library.static_library
            if file and library.alwayslink:
                whole.append(file)
            elif file:
                archives.append(file)
            else:
                file = library.dynamic_library or library.interface_library
                if file:
                    archives.append(file)
        flags += linker_input.user_link_flags
    ldflags = ["-Wl,--whole-archive"] + ["%ROOT%/" + f.path for f in whole] + ["-Wl,--no-whole-archive"] if whole else []
    ldflags += ["-Wl,--start-group"] + ["%ROOT%/" + f.path for f in archives] + ["-Wl,--end-group"]
    ldflags += flags + linkopts + ["-lstdc++", "-lm", "-pthread"]
    return depset(archives + whole, transitive = [cc.headers]), cflags, ldflags

def _go_action(ctx, mode, library, out):
    if not SDK.root:
        fail("\n\nno Go >= 1.%d is installed: run tools/setup.sh, then 'bazel sync --configure'\n" % SDK.minor)
    module = ctx.file.gomod.dirname
    cc_toolchain = find_cpp_toolchain(ctx)
    lines = [
        "mode\t" + mode,
        "out\t" + out.path,
        "goroot\t" + SDK.root,
        "goversion\t" + SDK.version,
        "modcache\t" + SDK.modcache,
        "cache\t" + SDK.cache,
        "gopath\t" + SDK.path,
        "module\t" + module,
        "package\t" + ctx.label.package,
    ]
    if ctx.attr.race == "on":
        lines.append("flag\t-race")
    if ctx.attr.gotags:
        lines.append("flag\t-tags=" + ",".join(ctx.attr.gotags))
    lines += ["xdef\t%s=%s" % (k, v) for k, v in ctx.attr.x_defs.items()]
    inputs = []
    for cgo in library.cgo:
        files, cflags, ldflags = _flags_of(cgo, ctx.fragments.cpp.linkopts)
        inputs.append(files)
        lines.append("cgo\t%s" % cgo.package)
        lines += ["cflag\t" + f for f in cflags] + ["ldflag\t" + f for f in ldflags]
        lines += ["cfile\t" + f.path for f in files.to_list()]
    sources = library.files.to_list()
    for file in sources + [ctx.file.gomod] + ([ctx.file.gosum] if ctx.file.gosum else []):
        # Generated files land beside the sources.
        lines.append("src\t%s\t%s" % (file.path, file.short_path))
    params = ctx.actions.declare_file(ctx.label.name + ".gobuild")
    ctx.actions.write(params, "\n".join(lines) + "\n")
    ctx.actions.run(
        executable = ctx.executable._builder,
        arguments = [params.path],
        inputs = depset(
            sources + [params, ctx.file.gomod] + ([ctx.file.gosum] if ctx.file.gosum else []),
            transitive = inputs + [cc_toolchain.all_files],
        ),
        outputs = [out],
        mnemonic = "GoBuild" if mode == "build" else "GoTestBuild",
        progress_message = "Building Go %s %s" % ("binary" if mode == "build" else "test", ctx.label),
        # The user's Go build cache is written to: that makes a rebuild take a second.
        execution_requirements = {"no-sandbox": "1", "no-remote": "1"},
    )

def _go_library_impl(ctx):
    library = _collect(ctx, ctx.attr.importpath)
    return [
        library,
        DefaultInfo(files = depset(ctx.files.srcs), runfiles = library.data),
    ]

def _go_binary_impl(ctx):
    library = _collect(ctx, ctx.attr.importpath)
    out = ctx.actions.declare_file(ctx.attr.out or ctx.label.name)
    _go_action(ctx, "build", library, out)
    return [DefaultInfo(files = depset([out]), executable = out, runfiles = library.data)]

_TEST = """#!/bin/bash
# Runs a Go test binary in its package's folder, as "go test" does.
binary=$PWD/%s
mkdir -p "%s" && cd "%s" || exit 1
export TMPDIR=${TEST_TMPDIR:-${TMPDIR:-/tmp}}
args=(-test.v -test.timeout="$((${TEST_TIMEOUT:-300} * 9 / 10))s")
[ -z "${TESTBRIDGE_TEST_ONLY:-}" ] || args+=("-test.run=$TESTBRIDGE_TEST_ONLY")
exec "$binary" "${args[@]}" "$@"
"""

def _go_test_impl(ctx):
    library = _collect(ctx, ctx.attr.importpath)
    binary = ctx.actions.declare_file(ctx.label.name + ".test")
    _go_action(ctx, "test", library, binary)
    script = ctx.actions.declare_file(ctx.label.name)
    folder = ctx.label.package or "."
    ctx.actions.write(script, _TEST % (binary.short_path, folder, folder), is_executable = True)
    runfiles = ctx.runfiles(files = [binary]).merge(library.data)
    return [
        DefaultInfo(files = depset([script]), executable = script, runfiles = runfiles),
        testing.TestEnvironment(ctx.attr.env),
    ]

_COLLECT = {
    "cdeps": attr.label_list(providers = [CcInfo]),
    "cgo": attr.bool(),
    "data": attr.label_list(allow_files = True),
    "deps": attr.label_list(providers = [GoLibraryInfo]),
    "embed": attr.label_list(providers = [GoLibraryInfo]),
    "embedsrcs": attr.label_list(allow_files = True),
    "importpath": attr.string(),
    "srcs": attr.label_list(allow_files = [".go", ".c", ".cc", ".h", ".s"]),
}

_BUILD = dict(
    _COLLECT,
    gomod = attr.label(allow_single_file = True, mandatory = True),
    gosum = attr.label(allow_single_file = True),
    gotags = attr.string_list(),
    race = attr.string(default = "off", values = ["on", "off", "auto"]),
    x_defs = attr.string_dict(),
    _builder = attr.label(default = "//go/private:builder", executable = True, cfg = "exec"),
    _cc_toolchain = attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
)

_go_library = rule(
    implementation = _go_library_impl,
    attrs = _COLLECT,
    provides = [GoLibraryInfo],
)

_go_binary = rule(
    implementation = _go_binary_impl,
    attrs = dict(_BUILD, out = attr.string()),
    executable = True,
    fragments = ["cpp"],
)

_go_test = rule(
    implementation = _go_test_impl,
    attrs = dict(_BUILD, env = attr.string_dict()),
    test = True,
    fragments = ["cpp"],
)

def _module():
    """The folder of the go.mod that rules this package."""
    package = native.package_name()
    found = [m for m in MODULES if m == "" or package == m or package.startswith(m + "/")]
    if not found:
        fail("no go.mod rules //%s: list its folder in WORKSPACE, go_register_toolchains(modules = [...])" % package)
    return sorted(found, key = len)[-1]

def go_library(name, **kwargs):
    """A Go package. As upstream's, without third-party deps: go.mod names those."""
    _go_library(name = name, **kwargs)

def go_binary(name, **kwargs):
    """A Go program; its package is the one of the BUILD file."""
    module = _module()
    _go_binary(name = name, gomod = "//%s:go.mod" % module, gosum = "//%s:go.sum" % module, **kwargs)

def go_test(name, **kwargs):
    """The tests of a Go package: srcs are the _test.go files, embed the library under test."""
    module = _module()
    _go_test(name = name, gomod = "//%s:go.mod" % module, gosum = "//%s:go.sum" % module, **kwargs)
