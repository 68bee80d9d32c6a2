// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	// SourceVariable is the environment variable with the directory of the programs' module, for
	// builds from an unusual place or from changed source.
	SourceVariable = "CTRLKIT_CONTROLPLANE_SOURCE"

	rootModule     = "github.com/ctrlkit/ctrlkit"
	programsModule = rootModule + "/controlplane/kubernetes"
)

// A sourceFinder returns one place where the programs' module may be.
type sourceFinder func(ctx context.Context, goCommand string) (string, error)

// sourceFinders are tried in this order:
//
//   - in the directory of the root module, if the go command finds one with the programs in it (a
//     checkout, a replace line, a workspace),
//   - beside the source from which the running program was compiled,
//   - in the module cache, downloaded at the version of the running program.
var sourceFinders = []sourceFinder{sourceInCheckout, sourceOfCompilation, sourceOfRunningVersion}

// findSource returns the directory of the programs' module: that in SourceVariable, or else the
// result of the first finder that succeeds.
func findSource(ctx context.Context, goCommand string, finders []sourceFinder) (string, error) {
	if dir := os.Getenv(SourceVariable); dir != "" {
		if err := checkSource(dir); err != nil {
			return "", fmt.Errorf("using the source that %s names: %w", SourceVariable, err)
		}
		return filepath.Abs(dir)
	}
	var errs []error
	for _, find := range finders {
		dir, err := find(ctx, goCommand)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("finding the source of the control plane's programs: %w; set %s to a checkout's controlplane/kubernetes directory",
		errors.Join(errs...), SourceVariable)
}

// checkSource returns an error unless the go.mod in dir is that of the programs' module.
func checkSource(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(content)) {
		if strings.TrimSpace(line) == "module "+programsModule {
			return nil
		}
	}
	return fmt.Errorf("%s is not the go.mod of module %s", filepath.Join(dir, "go.mod"), programsModule)
}

func sourceInCheckout(ctx context.Context, goCommand string) (string, error) {
	output, err := runGo(ctx, goCommand, "", "list", "-m", "-f", "{{.Dir}}", rootModule)
	if err != nil {
		return "", fmt.Errorf("looking for a checkout: %w", err)
	}
	root := strings.TrimSpace(string(output))
	if root == "" {
		return "", fmt.Errorf("looking for a checkout: module %s has no directory", rootModule)
	}
	dir := filepath.Join(root, "controlplane", "kubernetes")
	if err := checkSource(dir); err != nil {
		return "", fmt.Errorf("looking for a checkout: %w", err)
	}
	return dir, nil
}

// sourceOfCompilation finds the checkout in which the running program was built,
// if it is still there.
func sourceOfCompilation(context.Context, string) (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) { // built with -trimpath
		return "", errors.New("looking where the running program was compiled: it was built with -trimpath")
	}
	dir := filepath.Join(filepath.Dir(file), "kubernetes")
	if err := checkSource(dir); err != nil {
		return "", fmt.Errorf("looking where the running program was compiled: %w", err)
	}
	return dir, nil
}

func sourceOfRunningVersion(ctx context.Context, goCommand string) (string, error) {
	version, err := runningVersion()
	if err != nil {
		return "", fmt.Errorf("downloading the module: %w", err)
	}
	return downloadSource(ctx, goCommand, version)
}

func downloadSource(ctx context.Context, goCommand, version string) (string, error) {
	// Outside of any module, so that no go.mod affects the download.
	output, err := runGo(ctx, goCommand, os.TempDir(), "mod", "download", "-json", programsModule+"@"+version)
	var module struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(output, &module); jsonErr == nil && module.Error != "" {
		err = errors.New(module.Error)
	}
	if err != nil {
		return "", fmt.Errorf("downloading %s@%s: %w", programsModule, version, err)
	}
	if err := checkSource(module.Dir); err != nil {
		return "", fmt.Errorf("downloading %s@%s: %w", programsModule, version, err)
	}
	return module.Dir, nil
}

// runningVersion returns the version of the root module in the running program.
func runningVersion() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("the running program has no build information")
	}
	for _, module := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if module.Path != rootModule {
			continue
		}
		if module.Replace == nil && module.Version != "" && module.Version != "(devel)" {
			return module.Version, nil
		}
	}
	return "", fmt.Errorf("the running program was not built from a released version of %s", rootModule)
}

// hashSource returns a digest of the names and contents of the files that affect the build.
func hashSource(dir string) (string, error) {
	digest := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isBuildInput(entry.Name()) {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(digest, "%q %d\n%s", filepath.ToSlash(name), len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("reading the source of the control plane's programs: %w", err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

func isBuildInput(name string) bool {
	if name == "go.mod" || name == "go.sum" {
		return true
	}
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// runGo runs the go command in dir and returns its standard output. The error
// holds the end of what it wrote to standard error.
func runGo(ctx context.Context, goCommand, dir string, args ...string) ([]byte, error) {
	var stdout bytes.Buffer
	stderr := newTail(errorLines)
	command := exec.CommandContext(ctx, goCommand, args...)
	command.Dir = dir
	command.Stdout = &stdout
	command.Stderr = stderr
	if err := command.Run(); err != nil {
		return stdout.Bytes(), commandError("go "+strings.Join(args, " "), err, stderr)
	}
	return stdout.Bytes(), nil
}

// commandError returns an error with the way in which a command ended, and the last lines of its
// output.
func commandError(what string, err error, words fmt.Stringer) error {
	if said := strings.TrimSpace(words.String()); said != "" {
		return fmt.Errorf("%s: %w:\n%s", what, err, said)
	}
	return fmt.Errorf("%s: %w", what, err)
}
