// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// hashes returns, for the directory of each part, a hash of what its tests are made of: the files of
// the packages of this repository that they import, their testdata, and the versions of all others.
func hashes(parts []part) (map[string]string, error) {
	dirs := map[string]bool{}
	for _, p := range parts {
		dirs[p.dir] = true
	}
	if len(dirs) == 0 {
		return nil, errors.New("nothing to explore")
	}
	args := []string{"list", "-deps", "-test", "-json=Dir,ForTest,ImportPath,Deps"}
	for dir := range dirs {
		args = append(args, dir)
	}
	slices.Sort(args[4:])
	packages, err := list(args)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{} // by directory
	result := map[string]string{}
	for dir := range dirs {
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
}

func list(args []string) (map[string]listed, error) {
	var stderr bytes.Buffer
	command := exec.Command("go", args...)
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	packages := map[string]listed{}
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
}

// hash returns the hash of the tests in a directory.
func hash(dir string, packages map[string]listed, files map[string][]byte) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	used := map[string]bool{dir: true}
	for _, p := range packages {
		if p.Dir != dir || !strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		for _, name := range p.Deps {
			if d := packages[name].Dir; strings.HasPrefix(d, root+string(filepath.Separator)) {
				used[d] = true
			}
		}
	}
	sorted := make([]string, 0, len(used))
	for d := range used {
		sorted = append(sorted, d)
	}
	slices.Sort(sorted)
	sum := sha256.New()
	for _, d := range append(sorted, filepath.Join(root, "go.sum")) {
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
