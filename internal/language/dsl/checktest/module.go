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

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
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
	root, err := thisModule()
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

// thisModule returns the root of the Go module that the working directory is in.
func thisModule() (string, error) {
	root, found := check.ModuleRoot(".")
	if !found {
		return "", errors.New("finding go.mod: the working directory is in no Go module")
	}
	return root, nil
}
