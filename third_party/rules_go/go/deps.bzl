"""The public API for WORKSPACE, as upstream's //go:deps.bzl."""

load("//go/private:sdk.bzl", _go_register_toolchains = "go_register_toolchains", _go_rules_dependencies = "go_rules_dependencies")

go_register_toolchains = _go_register_toolchains
go_rules_dependencies = _go_rules_dependencies
