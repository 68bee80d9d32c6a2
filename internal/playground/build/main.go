// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command build makes the page where documents can be tried:
//
//	go run ./internal/playground/build dist/playground
//
// The page also works when it is opened from the disk, where a browser lets it read no other file:
// the program and the catalog are therefore in a script, compressed.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/catalog"
)

//go:embed page
var page embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := errors.New("usage: build DIRECTORY")
	if len(os.Args) == 2 {
		err = build(ctx, os.Args[1])
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

// build writes the page to a directory, and prints the sizes of its files as a server sends them.
func build(ctx context.Context, directory string) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	files, err := fs.Sub(page, "page")
	if err != nil {
		return err
	}
	if err := os.CopyFS(directory, files); err != nil {
		return err
	}
	program, err := compile(ctx, directory)
	if err != nil {
		return err
	}
	kinds, err := catalog.Read(ctx)
	if err != nil {
		return fmt.Errorf("making the catalog: %w", err)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("asking for GOROOT: %w", err)
	}
	// What runs the program belongs to the version of Go that compiled it.
	runner, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	script, err := inline(program, kinds)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"runner.js": runner, "program.js": script} {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o644); err != nil {
			return err
		}
	}
	return printSizes(directory)
}

// compile returns the program for the browser.
func compile(ctx context.Context, directory string) ([]byte, error) {
	file := filepath.Join(directory, "program.wasm")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./internal/playground/wasm")
	command.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling the program: %w\n%s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return program, os.Remove(file)
}

// inline returns a script that has the program and the catalog.
func inline(program, kinds []byte) ([]byte, error) {
	var script bytes.Buffer
	for _, part := range []struct {
		name string
		data []byte
	}{{"program", program}, {"catalog", kinds}} {
		compressed, err := compress(part.data)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&script, "ctrlkit.%s = %q;\n", part.name, base64.StdEncoding.EncodeToString(compressed))
	}
	return script.Bytes(), nil
}

func compress(data []byte) ([]byte, error) {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compressed.Bytes(), nil
}

func printSizes(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	total := 0
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return err
		}
		compressed, err := compress(text)
		if err != nil {
			return err
		}
		total += len(compressed)
		fmt.Printf("%9d %9d  %s\n", len(text), len(compressed), entry.Name())
	}
	fmt.Printf("%9s %9d  all, compressed by gzip -9; open %s\n", "", total, filepath.Join(directory, "index.html"))
	return nil
}
