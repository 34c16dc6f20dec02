"""The mark that makes a C++ library pure, and the refusal of anything impure beneath it.

Every xce_pure_library has a companion `<name>.pure` target, built by pure_mark, among its deps. The mark looks at each
dependency of its owner and accepts it only if that one has a mark of its own or is on the allow-list; since each mark
did the same for its owner, the whole transitive closure is pure.
"""

# Third-party code that computes and does nothing else, as far as XCE uses it. tools/lint/pure_check.py refuses the parts
# of abseil that do more (clocks, random, synchronization).
_ALLOWED = [
    "//third_party/absl:absl",
]

_MarkInfo = provider("Carried by a pure_mark target.", fields = {"owner": "the label of the library that it marks"})
_PureInfo = provider("What the aspect says of a dependency.", fields = {"pure": "whether it has a mark"})

def _find_mark_impl(target, ctx):
    marks = [dep[_MarkInfo].owner for dep in getattr(ctx.rule.attr, "deps", []) if _MarkInfo in dep]
    return [_PureInfo(pure = target.label in marks)]

_find_mark = aspect(
    implementation = _find_mark_impl,
    doc = "Tells whether a library carries its own mark of purity.",
)

def _local(label):
    return "//%s:%s" % (label.package, label.name)

def _pure_mark_impl(ctx):
    owner = ctx.label.relative(":" + ctx.attr.owner)
    refused = [
        _local(dep.label)
        for dep in ctx.attr.deps
        if not dep[_PureInfo].pure and _local(dep.label) not in _ALLOWED
    ]
    if refused:
        fail(("\n\n%s is an xce_pure_library and must not depend on %s.\nPure code takes values and returns values: " +
              "it may depend only on other xce_pure_library targets and on %s.\nMove what needs the dependency out, " +
              "behind an argument or an effect, or make the dependency pure (tools/build/pure.bzl says how).\n") %
             (_local(owner), ", ".join(refused), ", ".join(_ALLOWED)))
    return [_MarkInfo(owner = owner), CcInfo()]

pure_mark = rule(
    implementation = _pure_mark_impl,
    attrs = {
        "deps": attr.label_list(aspects = [_find_mark], providers = [CcInfo]),
        "owner": attr.string(mandatory = True),
    },
    provides = [CcInfo],
)
