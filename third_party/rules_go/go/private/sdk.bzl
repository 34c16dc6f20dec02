"""Finds the installed Go and the user's caches, and remembers which folders hold a go.mod."""

_FIND_GO = """
for d in /usr/local/go/bin $(ls -d /usr/lib/go-*/bin 2>/dev/null | sort -rV) "$(dirname "$(command -v go || echo /none/go)")"; do
  [ -x "$d/go" ] || continue
  v=$(GOTOOLCHAIN=local "$d/go" env GOVERSION)
  minor=${v#go1.}; minor=${minor%%.*}; minor=${minor%%[!0-9]*}
  case "$v" in go1.*) [ "$minor" -ge %MIN% ] || continue ;; esac
  GOTOOLCHAIN=local "$d/go" env GOROOT GOVERSION GOMODCACHE GOCACHE GOPATH
  exit 0
done
exit 1
"""

def _go_sdk_impl(ctx):
    found = ctx.execute(["bash", "-c", _FIND_GO.replace("%MIN%", str(ctx.attr.minor))])
    lines = found.stdout.strip().split("\n")
    if found.return_code != 0 or len(lines) != 5:
        # Only Go targets need it: say so when one of them is built.
        lines = ["", "none", "", "", ""]
    ctx.file("BUILD.bazel", "")
    ctx.file("sdk.bzl", "SDK = struct(root = %r, version = %r, modcache = %r, cache = %r, path = %r, minor = %d)\nMODULES = %r\n" % (
        lines[0],
        lines[1],
        lines[2],
        lines[3],
        lines[4],
        ctx.attr.minor,
        ctx.attr.modules,
    ))

_go_sdk = repository_rule(
    implementation = _go_sdk_impl,
    attrs = {
        "minor": attr.int(default = 23, doc = "Go 1.minor or newer is accepted"),
        "modules": attr.string_list(doc = "packages that hold a go.mod"),
    },
    configure = True,
    environ = ["HOME", "PATH", "GOMODCACHE", "GOCACHE", "GOPATH"],
    local = True,
)

def go_rules_dependencies():
    """Nothing to depend on; here because upstream's WORKSPACE calls it."""

def go_register_toolchains(version = "host", modules = []):
    """Uses the installed Go, >= 1.23. modules: the packages that hold a go.mod, which upstream would ignore."""
    if version != "host":
        fail("this rules_go drives the installed Go: say version = \"host\"")
    _go_sdk(name = "go_sdk", modules = modules)
