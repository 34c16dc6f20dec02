"""Fuzz targets: one function, a committed corpus, a test that replays it, a program that looks for more."""

load("//tools/build:defs.bzl", "xce_cc_binary", "xce_cc_test")

def xce_fuzz_target(name, deps):
    """NAME_fuzz.cc with corpus/NAME: the test NAME_fuzz_test, and NAME_fuzzer for ./dev fuzz.

    NAME_fuzzer has no main of its own: it links with --config=fuzz only.
    """
    srcs = [name + "_fuzz.cc"]
    xce_cc_test(
        name = name + "_fuzz_test",
        srcs = srcs,
        args = ["fuzz/corpus/" + name],
        data = native.glob(["corpus/" + name + "/*"]),
        main = False,
        deps = deps + [":replay"],
    )
    xce_cc_binary(
        name = name + "_fuzzer",
        testonly = True,
        srcs = srcs,
        tags = ["manual"],
        deps = deps + [":fuzz"],
    )
