// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package checktest

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/tools/txtar"
)

//go:embed testdata/demo.txtar
var demo []byte

// CronJob is the document of the language's example.
//
//go:embed testdata/cronjob.ctrlkit
var CronJob []byte

var moduleLine = regexp.MustCompile(`(?m)^module .*$`)

// WriteModule writes the Go module controller-kit-demo into a directory. The module has the
// requirements of the module around the working directory, so that it needs nothing that the test
// itself does not need.
func WriteModule(dir string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return fmt.Errorf("reading go.mod: %w", err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return fmt.Errorf("reading go.sum: %w", err)
	}
	tree, err := txtar.FS(txtar.Parse(demo))
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, tree); err != nil {
		return fmt.Errorf("writing the demo module: %w", err)
	}
	mod = moduleLine.ReplaceAll(mod, []byte("module controller-kit-demo"))
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644),
	)
}

// moduleRoot returns the directory at or above the working directory that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("finding go.mod: the working directory is in no Go module")
		}
		dir = filepath.Dir(dir)
	}
}
