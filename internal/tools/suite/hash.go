// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge"
)

// hashes returns, for each directory, a hash of what its tests are made of: the files of the
// packages of this repository that they import, what these embed, their testdata, and the versions
// of all others.
func hashes(dirs []string) (map[string]string, error) {
	if len(dirs) == 0 {
		return nil, errors.New("nothing to explore")
	}
	args := []string{"-deps", "-test", "-json=Dir,ForTest,ImportPath,Deps,EmbedFiles,TestEmbedFiles,XTestEmbedFiles"}
	list, err := merge.GoList[listed](context.Background(), append(args, dirs...)...)
	if err != nil {
		return nil, err
	}
	packages := map[string]listed{}
	for _, p := range list {
		packages[p.ImportPath] = p
	}
	files := map[string][]byte{} // by directory
	result := map[string]string{}
	for _, dir := range dirs {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if result[dir], err = hash(absolute, packages, files); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// A listed package is what go list says of it.
type listed struct {
	Dir        string
	ForTest    string
	ImportPath string
	Deps       []string

	EmbedFiles, TestEmbedFiles, XTestEmbedFiles []string
}

// versions are the files that choose the versions of what is not of this repository.
var versions = []string{"go.sum", "go.work.sum", "bench/go.sum", "examples/go.sum", "internal/pictures/go.sum"}

// hash returns the hash of the tests in a directory.
func hash(dir string, packages map[string]listed, files map[string][]byte) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	used, embedded := map[string]bool{dir: true}, map[string]bool{}
	for _, p := range packages {
		if p.Dir != dir || !strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		for _, name := range p.Deps {
			of := packages[name]
			if of.Dir != root && !strings.HasPrefix(of.Dir, root+string(filepath.Separator)) {
				continue
			}
			used[of.Dir] = true
			for _, file := range slices.Concat(of.EmbedFiles, of.TestEmbedFiles, of.XTestEmbedFiles) {
				embedded[filepath.Join(of.Dir, file)] = true
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(used))
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	for _, name := range versions {
		sorted = append(sorted, filepath.Join(root, name))
	}
	for _, d := range slices.Concat(sorted, slices.Sorted(maps.Keys(embedded))) {
		if files[d] == nil {
			if files[d], err = hashFiles(d); err != nil {
				return "", err
			}
		}
		relative, err := filepath.Rel(root, d)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %x\n", filepath.ToSlash(relative), files[d])
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// hashFiles returns the hash of the files in a directory, and in its testdata and config.
func hashFiles(dir string) ([]byte, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != dir && filepath.Dir(path) == dir && d.Name() != "testdata" && d.Name() != "config" {
				return filepath.SkipDir
			}
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %x\n", filepath.ToSlash(relative), sha256.Sum256(content))
		return nil
	})
	return sum.Sum(nil), err
}
