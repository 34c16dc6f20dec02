#!/bin/bash
# What tools/install.sh installs fits together: each unit starts a program that is there, systemd accepts the units (where it
# is), and the examples of settings have only settings that the programs know.
set -euo pipefail
fail() { printf 'install_test: %s\n' "$*" >&2; exit 1; }
root=$TEST_TMPDIR/root prefix=/usr
tools/install.sh --built . --destdir "$root" "$prefix"
units=$root$prefix/lib/systemd/system etc=$root$prefix/share/doc/xce/etc

for unit in controller scheduler worker apiserver; do
  file=$units/xce-$unit.service
  program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$file")
  [ -x "$root$program" ] || fail "$file starts $program, which is not installed"
  ! grep -q @PREFIX@ "$file" || fail "$file has @PREFIX@ left"
done
grep -qx 'KillMode=process' "$units/xce-worker.service" || fail "stopping the worker would stop its jobs"
grep -qx 'Delegate=yes' "$units/xce-worker.service" || fail "the worker may make no control groups"
if command -v systemd-analyze > /dev/null; then
  # It looks for the programs where they are to be, not under the root.
  sed -i "s|^ExecStart=|ExecStart=$root|" "$units"/*.service
  said=$(systemd-analyze verify --man=no "$units"/*.service 2>&1) || fail "$said"
  [ -z "$said" ] || fail "$said"
fi

# With these settings each program still says its version; with one that it does not know it says so.
for daemon in xce_controller xce_scheduler xcecd; do
  "$root$prefix/sbin/$daemon" --config "$etc/xce.toml" --version > /dev/null || fail "$daemon refuses etc/xce.toml"
done
printf '[worker]\ncpu = 4\n' > "$TEST_TMPDIR/wrong.toml"
! "$root$prefix/sbin/xcecd" --config "$TEST_TMPDIR/wrong.toml" 2> "$TEST_TMPDIR/said" || fail "an unknown setting is taken"
grep -q "wrong.toml: \[worker\] has no setting 'cpu'" "$TEST_TMPDIR/said" || fail "$(cat "$TEST_TMPDIR/said")"
printf 'installed %s files\n' "$(find "$root" -type f | wc -l)"
