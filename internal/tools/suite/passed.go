// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// passed remembers which tests have passed, so that they run again only when something has changed
// of what they are made of or have read, by the rules of go test: environment variables, and files
// and directories of the repository. GOFLAGS=-count=1 has all of them run.
type passed struct {
	file string
	root string

	mu      sync.Mutex
	code    map[string]string // by directory, a hash of what its tests are made of now
	entries map[string]pass
}

// A pass is one of a package.
type pass struct {
	Code  string   `json:"code"`  // a hash of what the tests are made of
	Log   []string `json:"log"`   // what they read, as package testing logs it
	State string   `json:"state"` // a hash of what they read
}

// readPassed reads the memory in a file, which need not exist. A file of another form is as good as
// none.
func readPassed(file, root string) (*passed, error) {
	p := &passed{file: file, root: root, code: map[string]string{}, entries: map[string]pass{}}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(content, &p.entries) != nil {
		return p, nil
	}
	return p, err
}

// learn learns what the tests in some directories are made of now.
func (p *passed) learn(dirs []string) error {
	code, err := hashes(dirs)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.code, code)
	return nil
}

// last returns when the tests with a key have passed last, if their code has not changed since.
func (p *passed) last(key, dir string) (pass, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, ok := p.entries[key]
	return entry, ok && entry.Code == p.code[dir]
}

// unchanged reports whether the tests in a directory have passed, and would see the same again.
func (p *passed) unchanged(key, dir string) bool {
	entry, ok := p.last(key, dir)
	if !ok {
		return false
	}
	state, err := p.state(entry.Log, dir)
	return err == nil && state == entry.State
}

// note notes that the tests in a directory have passed, with the log that package testing has
// written. What cannot be compared later is not noted.
func (p *passed) note(key, dir, log string) error {
	content, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if lines[0] != "# test log" {
		return nil
	}
	seen := map[string]bool{}
	var entry pass
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "chdir ") || !seen[line] { // each chdir counts, and a file once for each
			seen[line] = true
			entry.Log = append(entry.Log, line)
		}
		if strings.HasPrefix(line, "chdir ") {
			clear(seen)
		}
	}
	if entry.State, err = p.state(entry.Log, dir); errors.Is(err, errTooNew) {
		return nil
	} else if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	entry.Code = p.code[dir]
	p.entries[key] = entry
	return nil
}

// write writes the memory.
func (p *passed) write() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	content, err := json.Marshal(p.entries)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(p.file, content, 0o644)
}

// errTooNew is returned for a file that has changed so recently that its time does not tell whether
// it changes again.
var errTooNew = errors.New("it has just changed")

// state returns the hash of what tests have read. What is not in the repository is not part of it.
func (p *passed) state(log []string, dir string) (string, error) {
	dir = filepath.Join(p.root, dir)
	sum := sha256.New()
	for _, line := range log {
		verb, name, _ := strings.Cut(line, " ")
		if verb == "getenv" {
			fmt.Fprintf(sum, "%s %q\n", name, os.Getenv(name))
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if verb == "chdir" {
			dir = name
			continue
		}
		relative, err := filepath.Rel(p.root, name)
		if err != nil || relative == ".." || strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
			continue
		}
		description, err := describeFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %s %s\n", verb, relative, description)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// describeFile returns what changes of a file with its content, and of a directory with its
// entries.
func describeFile(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "none", nil //nolint:nilerr // that it is not there is what is to be remembered
	}
	if !info.IsDir() {
		if time.Since(info.ModTime()) < 2*time.Second {
			return "", errTooNew
		}
		return fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano()), nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return "unreadable", nil //nolint:nilerr // as above
	}
	var all strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&all, e.Name(), e.Type())
		if info, err := e.Info(); err == nil && !e.IsDir() {
			fmt.Fprintln(&all, info.Size(), info.ModTime().UnixNano())
		}
	}
	return all.String(), nil
}
