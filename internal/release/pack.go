// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// A file goes into an archive.
type file struct {
	name, path string
	mode       fs.FileMode
}

// pack returns an archive of files: a zip for Windows, a compressed tar for others. Equal files give
// equal bytes.
func (r *release) pack(files []file, system string) (packed []byte, extension string, err error) {
	var buffer bytes.Buffer
	if system == "windows" {
		return r.zip(&buffer, files)
	}
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, "", err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return nil, "", err
		}
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(content)), ModTime: r.time, Format: tar.FormatPAX}
		if err := w.WriteHeader(header); err != nil {
			return nil, "", err
		}
		if _, err := w.Write(content); err != nil {
			return nil, "", err
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return bytesOf(&buffer, compressed, ".tar.gz")
}

func (r *release) zip(buffer *bytes.Buffer, files []file) ([]byte, string, error) {
	w := zip.NewWriter(buffer)
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return nil, "", err
		}
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.time}
		header.SetMode(f.mode)
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, "", err
		}
		if _, err := entry.Write(content); err != nil {
			return nil, "", err
		}
	}
	return bytesOf(buffer, w, ".zip")
}

func bytesOf(buffer *bytes.Buffer, w io.Closer, extension string) ([]byte, string, error) {
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return buffer.Bytes(), extension, nil
}

const downloads = "https://github.com/ctrlkit/ctrlkit/releases/download/"

type object = map[string]any

// krewManifest returns the manifest of the plugin for the index of krew.
func krewManifest(version string, archives []archive) ([]byte, error) {
	var list []object
	for _, a := range archives {
		system, processor, _ := strings.Cut(a.platform, "/")
		program, bin := "ctrlkit", "kubectl-ctrlkit"
		if system == "windows" {
			program, bin = "ctrlkit.exe", "kubectl-ctrlkit.exe"
		}
		list = append(list, object{
			"selector": object{"matchLabels": object{"os": system, "arch": processor}},
			"uri":      downloads + version + "/" + a.name,
			"sha256":   a.sum,
			"files":    []object{{"from": program, "to": bin}, {"from": "LICENSE", "to": "."}},
			"bin":      bin,
		})
	}
	return yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   object{"name": "ctrlkit"},
		"spec": object{
			"version":          version,
			"homepage":         "https://github.com/ctrlkit/ctrlkit",
			"shortDescription": "Explain, run and test operators",
			"description": "Says why an object of an operator built with ctrlkit is not ready and what to do, lists\n" +
				"external resources without an object, and builds, runs and tests operators.\n",
			"platforms": list,
		},
	})
}
