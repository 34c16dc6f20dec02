"""The public API, as upstream's //go:def.bzl."""

load("//go/private:rules.bzl", _go_binary = "go_binary", _go_library = "go_library", _go_test = "go_test")

go_binary = _go_binary
go_library = _go_library
go_test = _go_test
