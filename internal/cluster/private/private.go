// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package private writes files that hold something of a cluster, and are for their owner alone:
// what was there before is replaced, instead of written through its permissions or its symbolic
// link.
package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Write writes a file with permissions 0600. No reader sees a part of it.
func Write(name string, content []byte) error {
	if device(name) {
		return os.WriteFile(name, content, 0o600)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".ctrlkit-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Create creates an empty file with permissions 0600, for what is written to it over time.
func Create(name string) (*os.File, error) {
	if !device(name) {
		if err := Write(name, nil); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
}

// Append opens a file for more, or creates one if there is none that is private.
func Append(name string) (*os.File, error) {
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return Create(name)
	}
	return os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
}

// device reports whether a name leads to what keeps nothing, such as /dev/stdout or a pipe.
func device(name string) bool {
	for _, root := range []string{"/dev/", "/proc/"} {
		if strings.HasPrefix(filepath.Clean(name), root) {
			return true
		}
	}
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&(os.ModeDevice|os.ModeNamedPipe|os.ModeSocket) != 0
}
