// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package published

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// modules are those of the repository that a release publishes, by their directories.
var modules = map[string]string{
	"github.com/ctrlkit/ctrlkit":                         ".",
	"github.com/ctrlkit/ctrlkit/controlplane/kubernetes": "controlplane/kubernetes",
}

// Proxy writes a module proxy into a directory. It has the modules of the checkout, as they are now,
// in one version. Files that git ignores are left out.
//
// GOPROXY=file://DIR,https://proxy.golang.org and GONOSUMDB=github.com/ctrlkit/ctrlkit make the go
// command use it.
func Proxy(dir, checkout, version string) error {
	for path, below := range modules {
		if err := publish(dir, module.Version{Path: path, Version: version}, filepath.Join(checkout, below)); err != nil {
			return fmt.Errorf("publishing %s@%s: %w", path, version, err)
		}
	}
	return nil
}

// Version returns a version for the checkout as it is now: no two contents have the same one, since
// the go command takes for granted that what a version contains never changes.
func Version(checkout string) (string, error) {
	files, err := sources(checkout)
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	for _, f := range files {
		content, err := f.Open()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%q\n", f.Path())
		_, err = io.Copy(digest, content)
		if err := errors.Join(err, content.Close()); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("v0.1.0-checkout.x%x", digest.Sum(nil)[:6]), nil
}

func publish(dir string, m module.Version, source string) error {
	base := filepath.Join(dir, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{m.Version + ".info": info, m.Version + ".mod": goMod, "list": []byte(m.Version + "\n")} {
		if err := os.WriteFile(filepath.Join(base, name), content, 0o644); err != nil {
			return err
		}
	}
	files, err := sources(source)
	if err != nil {
		return err
	}
	archive, err := os.Create(filepath.Join(base, m.Version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(zip.Create(archive, m, files), archive.Close())
}

// sources lists the files of a directory that git has or would add.
func sources(dir string) ([]zip.File, error) {
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", ".")
	list.Dir = dir
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w", dir, err)
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(output), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, file{dir, name})
		}
	}
	return files, nil
}

// file is a file below a directory.
type file struct{ dir, name string }

var _ zip.File = file{}

func (f file) Path() string                 { return filepath.ToSlash(f.name) }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.dir, f.name)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.dir, f.name)) }
