// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// nested are the modules below the root that users download: their tags begin with their directory.
var nested = []string{"controlplane/kubernetes"}

// A release is one in the making.
type release struct {
	version   string    // such as v0.1.0
	source    string    // the checkout
	out       string    // where the files go
	platforms []string  // such as linux/amd64
	dry       bool      // no tags in source
	log       io.Writer // progress

	clone string    // a clone of source, with the tags
	time  time.Time // of the commit: the archives are equal, whenever they are built
}

// An archive is a file of the release.
type archive struct{ platform, name, sum string }

func (r *release) make(ctx context.Context) (err error) {
	if err := r.check(ctx); err != nil {
		return err
	}
	parent, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(parent)) }()
	if err := r.cloneTo(ctx, filepath.Join(parent, "ctrlkit")); err != nil {
		return err
	}
	var archives []archive
	for _, platform := range r.platforms {
		a, err := r.build(ctx, platform)
		if err != nil {
			return fmt.Errorf("building for %s: %w", platform, err)
		}
		archives = append(archives, a)
	}
	if err := r.describe(archives); err != nil {
		return err
	}
	if r.dry {
		fmt.Fprintf(r.log, "dry run: no tag is set; the files are in %s\n", r.out)
		return nil
	}
	if err := r.tag(ctx, r.source); err != nil {
		return err
	}
	fmt.Fprintf(r.log, "tagged. To publish:\n  git push origin %s\n  gh release create %s %s/*\n", strings.Join(r.tags(), " "), r.version, r.out)
	return nil
}

// tags returns the tag of each module.
func (r *release) tags() []string {
	tags := []string{r.version}
	for _, dir := range nested {
		tags = append(tags, dir+"/"+r.version)
	}
	return tags
}

var versionForm = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// check reports everything that a release needs and that is not there.
func (r *release) check(ctx context.Context) error {
	form := versionForm.FindStringSubmatch(r.version)
	if form == nil {
		return fmt.Errorf("%q is not a version: want one such as v0.1.0 or v0.2.0-rc.1", r.version)
	}
	var missing []error
	if changed, err := r.git(ctx, r.source, "status", "--porcelain"); err != nil {
		return err
	} else if changed != "" {
		missing = append(missing, fmt.Errorf("there are uncommitted changes: commit or remove them\n%s", changed))
	}
	for _, tag := range r.tags() {
		if found, err := r.git(ctx, r.source, "tag", "--list", tag); err != nil {
			return err
		} else if found != "" {
			missing = append(missing, fmt.Errorf("the tag %s exists: choose the next version", tag))
		}
	}
	missing = append(missing, r.checkChangelog(form[1]+"."+form[2]))
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		missing = append(missing, fmt.Errorf("%s is not empty: remove it", r.out))
	}
	for _, platform := range r.platforms {
		if system, processor, ok := strings.Cut(platform, "/"); !ok || system == "" || processor == "" {
			missing = append(missing, fmt.Errorf("the platform %q: want one such as linux/amd64", platform))
		}
	}
	return errors.Join(missing...)
}

// checkChangelog demands an entry for the version, and that the table of versions has its minor with
// the controller-runtime that go.mod requires.
func (r *release) checkChangelog(minor string) error {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(r.source, "go.mod"))
	if err != nil {
		return err
	}
	var missing []error
	if heading := "## " + strings.TrimPrefix(r.version, "v"); !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(heading) + `( |$)`).Match(text) {
		missing = append(missing, fmt.Errorf("CHANGELOG.md has no section %q: rename \"Unreleased\", and begin a new one", heading))
	}
	required := regexp.MustCompile(`sigs\.k8s\.io/controller-runtime (v\d+\.\d+)`).FindSubmatch(mod)
	if required == nil {
		return errors.Join(append(missing, errors.New("go.mod requires no controller-runtime"))...)
	}
	row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(minor) + ` \| ` + regexp.QuoteMeta(string(required[1])) + ` \|`)
	if !row.Match(text) {
		missing = append(missing, fmt.Errorf("the table of CHANGELOG.md has no row \"| %s | %s |\": each minor version goes with one of controller-runtime", minor, required[1]))
	}
	return errors.Join(missing...)
}

// cloneTo makes a clone of the last commit, with the tags: the go command records them in what it
// builds.
func (r *release) cloneTo(ctx context.Context, dir string) error {
	if _, err := r.git(ctx, r.source, "clone", "--quiet", "--no-hardlinks", ".", dir); err != nil {
		return err
	}
	r.clone = dir
	if err := r.tag(ctx, dir); err != nil {
		return err
	}
	seconds, err := r.git(ctx, dir, "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	r.time = time.Unix(unix, 0).UTC()
	return err
}

func (r *release) tag(ctx context.Context, dir string) error {
	for _, tag := range r.tags() {
		if _, err := r.git(ctx, dir, "tag", "--annotate", "--message", "ctrlkit "+r.version, tag); err != nil {
			return err
		}
	}
	return nil
}

// build builds the command for a platform, and packs it.
func (r *release) build(ctx context.Context, platform string) (archive, error) {
	system, processor, _ := strings.Cut(platform, "/")
	fmt.Fprintf(r.log, "building for %s\n", platform)
	name := "ctrlkit"
	if system == "windows" {
		name += ".exe"
	}
	program := filepath.Join(filepath.Dir(r.clone), system+"-"+processor, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", program, "./cmd/ctrlkit")
	cmd.Dir = r.clone
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		return archive{}, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(output))
	}
	files := []file{{name, program, 0o755}, {"LICENSE", filepath.Join(r.clone, "LICENSE"), 0o644}, {"README.md", filepath.Join(r.clone, "README.md"), 0o644}}
	packed, extension, err := r.pack(files, system)
	if err != nil {
		return archive{}, err
	}
	sum := sha256.Sum256(packed)
	a := archive{platform, fmt.Sprintf("ctrlkit_%s_%s_%s%s", strings.TrimPrefix(r.version, "v"), system, processor, extension), hex.EncodeToString(sum[:])}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return archive{}, err
	}
	return a, os.WriteFile(filepath.Join(r.out, a.name), packed, 0o644) //nolint:gosec // it is published
}

// describe writes the checksums and the manifest.
func (r *release) describe(archives []archive) error {
	var sums strings.Builder
	for _, a := range archives {
		fmt.Fprintf(&sums, "%s  %s\n", a.sum, a.name)
	}
	manifest, err := krewManifest(r.version, archives)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"checksums.txt": []byte(sums.String()), "ctrlkit.yaml": manifest} {
		if err := os.WriteFile(filepath.Join(r.out, name), text, 0o644); err != nil { //nolint:gosec // it is published
			return err
		}
	}
	return nil
}

func (r *release) git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var output, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(problem.Bytes()))
	}
	return strings.TrimSpace(output.String()), nil
}
