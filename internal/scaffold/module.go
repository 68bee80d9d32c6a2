// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"slices"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

const (
	ctrlkitModule       = "github.com/ctrlkit/ctrlkit"
	ctrlkitTool         = ctrlkitModule + "/cmd/ctrlkit"
	controllerGenModule = "sigs.k8s.io/controller-tools"
	controllerGenTool   = controllerGenModule + "/cmd/controller-gen"

	controllerRuntimeModule = "sigs.k8s.io/controller-runtime"

	// controllerGenVersion is the version of controller-gen that new projects use, and by which the
	// templates of generated files are.
	controllerGenVersion = "v0.23.0"

	// These are the versions that ctrlkit requires itself; a test compares them with its go.mod.
	goVersion                = "1.26.0"
	kubernetesVersion        = "v0.37.2"
	controllerRuntimeVersion = "v0.25.2"
)

// Requirements say which ctrlkit a project requires.
type Requirements struct {
	Ctrlkit string // the version
	Replace string // a directory with ctrlkit, instead of the version; empty for none
}

// newModule returns the go.mod of a new project. The go command completes it.
func newModule(repo string, r Requirements) ([]byte, error) {
	f := new(modfile.File)
	if err := f.AddModuleStmt(repo); err != nil {
		return nil, err
	}
	return extendModule(f, r, true)
}

// extendModule adds what a project requires to its go.mod, and leaves alone what is newer. A new
// project gets the tools that its Makefile runs, too.
func extendModule(f *modfile.File, r Requirements, tools bool) ([]byte, error) {
	wanted := []struct{ path, version string }{{ctrlkitModule, r.Ctrlkit}}
	if tools {
		wanted = append(wanted, []struct{ path, version string }{
			{"k8s.io/api", kubernetesVersion}, {"k8s.io/apimachinery", kubernetesVersion}, {"k8s.io/client-go", kubernetesVersion},
			{controllerRuntimeModule, controllerRuntimeVersion}, {controllerGenModule, controllerGenVersion},
		}...)
		for _, tool := range []string{ctrlkitTool, controllerGenTool} {
			if err := f.AddTool(tool); err != nil {
				return nil, err
			}
		}
	}
	if f.Go == nil {
		if err := f.AddGoStmt(goVersion); err != nil {
			return nil, err
		}
	}
	requirements := slices.Clone(f.Require)
	for _, w := range wanted {
		at := slices.IndexFunc(requirements, func(now *modfile.Require) bool { return now.Mod.Path == w.path })
		switch {
		case at < 0:
			requirements = append(requirements, &modfile.Require{Mod: module.Version{Path: w.path, Version: w.version}})
		case semver.Compare(requirements[at].Mod.Version, w.version) < 0:
			requirements[at] = &modfile.Require{Mod: module.Version{Path: w.path, Version: w.version}}
		}
	}
	f.SetRequireSeparateIndirect(requirements) // those of the project itself stand in the first block
	if r.Replace != "" {
		if err := f.AddReplace(ctrlkitModule, "", r.Replace, ""); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

// module plans the go.mod of a project: a new one, or what the one that is there lacks.
func (p *Plan) module(project *Project, r Requirements, tools bool) error {
	old, err := readIfThere(p.Dir, modFile)
	if err != nil {
		return err
	}
	if old == nil {
		content, err := newModule(project.Repo, r)
		if err != nil {
			return fmt.Errorf("writing %s: %w", modFile, err)
		}
		p.note(Change{Path: modFile, New: content})
		return nil
	}
	f, err := modfile.Parse(modFile, old, nil)
	if err != nil {
		return fmt.Errorf("reading %s: %w", modFile, err)
	}
	if f.Module == nil || f.Module.Mod.Path != project.Repo {
		return nameError("repo", "%s: %s is of another module", project.Repo, modFile)
	}
	for _, now := range f.Require {
		if v := now.Mod; v.Path == controllerRuntimeModule && semver.Compare(v.Version, controllerRuntimeVersion) < 0 {
			p.Upgrade = fmt.Sprintf("ctrlkit requires %s %s: go mod tidy moves the whole project to it, from %s, and the k8s.io modules with it. "+
				"Build and test the controllers that are there", v.Path, controllerRuntimeVersion, v.Version)
		}
	}
	content, err := extendModule(f, r, tools)
	if err != nil {
		return fmt.Errorf("extending %s: %w", modFile, err)
	}
	p.note(Change{Path: modFile, Old: old, New: content, Extends: true})
	return nil
}

// ModulePath returns the path of the module in a directory, empty if it has no go.mod.
func ModulePath(dir string) (string, error) {
	content, err := readIfThere(dir, modFile)
	if err != nil || content == nil {
		return "", err
	}
	if path := modfile.ModulePath(content); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("%s in %s names no module", modFile, dir)
}
