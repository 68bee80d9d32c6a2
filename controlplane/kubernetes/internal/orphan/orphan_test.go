// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package orphan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestExpectedParent(t *testing.T) {
	for _, test := range []struct {
		said string
		want int
	}{
		{"", 7},
		{"42", 42},
		{"someone", 7},
	} {
		if got := expectedParent(test.said, 7); got != test.want {
			t.Errorf("expectedParent(%q, 7) = %d, want %d", test.said, got, test.want)
		}
	}
}

func TestDisposableTakesOnlyWhatIsNamedOrEnvtests(t *testing.T) {
	named := "/run/a" + string(filepath.ListSeparator) + "/run/b"
	got := disposable(named, []string{
		"--data-dir=/tmp/k8s_test_framework_123",
		"--cert-dir=/tmp/k8s_test_framework_456",
		"--data-dir=/var/lib/etcd",
		"--log-dir=/tmp/k8s_test_framework_789",
		"--data-dir",
		"/tmp/k8s_test_framework_999",
	})
	want := []string{"/run/a", "/run/b", "/tmp/k8s_test_framework_123", "/tmp/k8s_test_framework_456"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := disposable("", nil); len(got) > 0 {
		t.Errorf("without anything named: %q, want nothing", got)
	}
}

func TestRemove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(dir, "member"), 0o755); err != nil {
		t.Fatal(err)
	}
	remove([]string{dir, filepath.Join(dir, "absent")})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory: %v, want that it does not exist", err)
	}
}
