"""The one facade for XCE's C++ targets: language level is in .bazelrc, warnings and copts are here and only here.

Includes are written from the workspace root ("libxce/model/job.h"). Visibility is private unless said otherwise.
"""

load("//tools/build:pure.bzl", "pure_mark")

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-missing-field-initializers",
    "-Wno-sign-compare",
]

_CXX_WARNINGS = [
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
]

def _copts(srcs, copts):
    # g++ refuses C++ warnings for C only with a warning, which -Werror would raise: ask for them only when no C file is there.
    has_c = any([type(s) == "string" and s.endswith(".c") for s in srcs])
    return _WARNINGS + ([] if has_c else _CXX_WARNINGS) + copts

def xce_cc_library(name, srcs = [], hdrs = [], deps = [], copts = [], **kwargs):
    """A cc_library with XCE's warnings as errors."""
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = _copts(srcs, copts),
        deps = deps,
        **kwargs
    )

def xce_pure_library(name, srcs = [], hdrs = [], deps = [], copts = [], tags = [], **kwargs):
    """A cc_library that may depend only on other pure libraries and on the allow-list in pure.bzl.

    Pure code has no clock, no randomness, no I/O and no threads; tools/lint/pure_check.py reads the sources for those.
    """
    for attribute in ["linkopts", "additional_linker_inputs", "linkstamp"]:
        if attribute in kwargs:
            fail("xce_pure_library '%s' must not set %s: a pure library links nothing" % (name, attribute))
    pure_mark(
        name = name + ".pure",
        deps = deps,
        owner = name,
        tags = tags,
        testonly = kwargs.get("testonly", False),
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = _copts(srcs, copts),
        tags = tags,
        deps = deps + [":" + name + ".pure"],
        **kwargs
    )

def xce_cc_binary(name, srcs = [], deps = [], copts = [], **kwargs):
    """A cc_binary with XCE's warnings as errors."""
    native.cc_binary(
        name = name,
        srcs = srcs,
        copts = _copts(srcs, copts),
        deps = deps,
        **kwargs
    )

def xce_cc_test(name, srcs, deps = [], copts = [], size = "small", main = True, **kwargs):
    """A GoogleTest cc_test; main = False when the test brings its own main()."""
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        copts = _copts(srcs, copts),
        deps = deps + (["//third_party/gtest:gtest_main"] if main else []),
        **kwargs
    )

def xce_capnp_library(name, srcs, deps = [], **kwargs):
    """Cap'n Proto schemas compiled to C++; include "<package>/<file>.capnp.h".

    Schemas import one another by relative path, and "/capnp/c++.capnp" from the system. deps: other xce_capnp_library
    targets that srcs import.
    """
    for src in srcs:
        if not src.endswith(".capnp"):
            fail("xce_capnp_library '%s': %s is not a .capnp file" % (name, src))
    native.filegroup(
        name = name + ".schemas",
        srcs = srcs + [_absolute(dep) + ".schemas" for dep in deps],
        visibility = kwargs.get("visibility"),
    )
    native.genrule(
        name = name + ".gen",
        srcs = srcs + [":" + name + ".schemas"],
        outs = [src + ext for src in srcs for ext in [".h", ".c++"]],
        cmd = " && ".join([
            "/usr/bin/capnp compile -o/usr/bin/capnpc-c++:$(GENDIR) " + " ".join(["$(location %s)" % src for src in srcs]),
        ]),
        message = "Compiling Cap'n Proto schemas",
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = [src + ".c++" for src in srcs],
        hdrs = [src + ".h" for src in srcs],
        copts = ["-w"],
        deps = deps + ["//third_party/capnp"],
        **kwargs
    )

def _absolute(label):
    # "//a/b" has the target name b spelled out, so that a suffix can be added to it.
    if label.startswith("//") and ":" not in label:
        return label + ":" + label.split("/")[-1]
    return label
