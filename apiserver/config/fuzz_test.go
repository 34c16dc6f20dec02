package config

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzFile: a configuration file is refused, or what it makes can work.
// Longer: cd apiserver && go test -run='^$' -fuzz=FuzzFile ./config
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"", "listen: 127.0.0.1:1\nbackend:\n  peers: [\"a=h:1\"]\n  max_calls: 3\n", "listen: [1]\n", "backend: {timeout_ms: 1e99}\n",
		"a: &a [*a]\n", "backend: *b\n", "listen: \"[::1]:99999\"\n", "\t", "log_level: 5\n---\nlisten: x\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "apiserver.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := load("--config", path)
		if err == nil && (config.Backend.MaxCalls < 1 || config.Backend.TimeoutMs < 100 || config.Listen == "") {
			t.Fatalf("taken: %+v", config)
		}
	})
}
