// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// Project is the operator's package, as the go command describes it.
type Project struct {
	ImportPath string
	Dir        string // of the package
	ModuleDir  string // of its module; Dir if it has none

	name    string // as a user writes it
	workDir string // in which the go command runs
	pattern string // the package argument of the go command
	instead string // the directory that was taken instead of the one that was named; empty if none was
}

// FindProject asks the go command about the package that arg names: a directory, a Go file in it,
// or an import path. The directory may be in another module than the current one. The package must
// be a command. For a directory that is none, such as the root of a project of kubebuilder's, it is
// the one in the directory cmd there.
func FindProject(ctx context.Context, arg string) (*Project, error) {
	p, err := findPackage(ctx, arg)
	if err == nil || !isDir(arg) || !isDir(filepath.Join(arg, "cmd")) {
		return p, err
	}
	instead := filepath.Join(arg, "cmd")
	if filepath.IsLocal(instead) { // as users write it
		instead = "." + string(filepath.Separator) + instead
	}
	if p, errOfCmd := findPackage(ctx, instead); errOfCmd == nil {
		p.instead = instead
		return p, nil
	}
	return nil, err // of what was named
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func findPackage(ctx context.Context, arg string) (*Project, error) {
	p := &Project{name: arg, workDir: ".", pattern: arg}
	if info, err := os.Stat(arg); err == nil {
		p.workDir, p.pattern = arg, "."
		if !info.IsDir() {
			p.workDir = filepath.Dir(arg)
		}
	} else if strings.HasPrefix(arg, ".") || filepath.IsAbs(arg) {
		return nil, fmt.Errorf("looking for the operator's package: %w", err)
	}

	cmd := p.goCommand(ctx, "list", "-e", "-json=Name,ImportPath,Dir,Module,Error", "--", p.pattern)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, goError(ctx, fmt.Sprintf("looking for the operator's package %s", arg), err, stderr.String())
	}
	return p, p.read(arg, output)
}

// read reads what "go list" prints about the package that arg names.
func (p *Project) read(arg string, output []byte) error {
	var listed struct {
		Name, ImportPath, Dir string
		Module                *struct{ Dir string }
		Error                 *struct{ Err string }
	}
	decoder := json.NewDecoder(bytes.NewReader(output))
	if err := decoder.Decode(&listed); err != nil {
		return fmt.Errorf("looking for the operator's package: no package matches %s", arg)
	}
	switch {
	case decoder.More():
		return fmt.Errorf("%s matches several packages: name the one with the operator's main function", arg)
	case listed.Error != nil && listed.Name == "":
		return fmt.Errorf("looking for the operator's package: %s", strings.TrimSpace(listed.Error.Err))
	case listed.Name != "main":
		return fmt.Errorf("%s is package %s: name the package with the operator's main function, often ./cmd", listed.ImportPath, listed.Name)
	}
	p.ImportPath, p.Dir, p.ModuleDir = listed.ImportPath, listed.Dir, listed.Dir
	if listed.Module != nil && listed.Module.Dir != "" {
		p.ModuleDir = listed.Module.Dir
	}
	return nil
}

// Name returns the name of the operator's program.
func (p *Project) Name() string { return filepath.Base(p.Dir) }

// goCommand prepares a call of the go command for the package.
func (p *Project) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.workDir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = supervisor.OwnProcessGroup() // Ctrl-C ends it through ctx
	return cmd
}

// goError explains why the go command failed.
func goError(ctx context.Context, doing string, err error, stderr string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s: the go command is not in PATH; install Go from https://go.dev/dl", doing)
	}
	if stderr = strings.TrimSpace(stderr); stderr != "" {
		return fmt.Errorf("%s: %s", doing, stderr)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// CRDFiles returns the files of the first directory config/crd/bases or config/crd, from the
// package's directory up to the root of its module. It returns none if there is no such directory.
func (p *Project) CRDFiles() ([]string, error) {
	return p.conventional("config/crd/bases", "config/crd")
}

// SampleFiles returns the files of the first directory config/samples, from the package's directory
// up to the root of its module.
func (p *Project) SampleFiles() ([]string, error) {
	return p.conventional("config/samples")
}

func (p *Project) conventional(names ...string) ([]string, error) {
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		for _, name := range names {
			files, err := ManifestFiles(filepath.Join(dir, filepath.FromSlash(name)))
			if err == nil && len(files) > 0 {
				return files, nil
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
		if dir == p.ModuleDir || dir == filepath.Dir(dir) {
			return nil, nil
		}
	}
}

// ManifestFiles returns path itself if it is a file, and otherwise the manifests in the directory,
// sorted. Files of kustomize are not manifests.
func ManifestFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("looking for manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("looking for manifests: %w", err)
	}
	var files []string
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name())
		base := strings.TrimSuffix(entry.Name(), extension)
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, extension) || strings.HasPrefix(base, "kustom") {
			continue
		}
		files = append(files, filepath.Join(path, entry.Name()))
	}
	return files, nil
}
