// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"
)

// drawPage runs an operator in memory with some objects, of which not all can become ready, and takes
// pictures of its page with Chromium.
func drawPage(ctx context.Context, directory string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	scene, err := writeScene()
	if err != nil {
		return err
	}
	defer os.Remove(scene)
	run := exec.CommandContext(ctx, "go", "run", "./cmd/ctrlkit", "run", "--on", "memory", "--samples", scene, "./examples/04_website")
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run passes no signal on
	said, err := run.StderrPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return err
	}
	defer func() {
		_ = syscall.Kill(-run.Process.Pid, syscall.SIGINT)
		_ = run.Wait() // it was interrupted
	}()
	address, err := addressIn(said)
	if err != nil {
		return err
	}
	browser, stop, err := newBrowser(ctx)
	if err != nil {
		return err
	}
	defer stop()
	time.Sleep(8 * time.Second) // Deployments become available
	const shop = "group=web.ctrlkit.dev&kind=Website&namespace=default&name=shop"
	for name, path := range map[string]string{"page-objects": "objects", "page-object": "object?" + shop} {
		base, _, _ := strings.Cut(address, "?")
		var png []byte
		err := chromedp.Run(browser, screen(1300, 760, "light"), chromedp.Navigate(address), chromedp.Navigate(base+path), chromedp.Sleep(time.Second), chromedp.FullScreenshot(&png, 100))
		if err != nil {
			return fmt.Errorf("the picture of %s: %w", name, err)
		}
		if err := writeFile(filepath.Join(directory, name+".png"), func(w io.Writer) error { _, err := w.Write(png); return err }); err != nil {
			return err
		}
	}
	return nil
}

var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?key=\w+`)

// addressIn returns the address of the page in what a run says.
func addressIn(said io.Reader) (string, error) {
	lines := bufio.NewScanner(said)
	var all strings.Builder
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if found := pageAddress.FindString(lines.Text()); found != "" {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return found, nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("the run has no page:\n%s", all.String())
}

// writeScene writes a file with websites: some have what they need, others wait for one of two
// Secrets.
func writeScene() (string, error) {
	file, err := os.CreateTemp("", "scene-*.yaml")
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // writing reports errors
	fmt.Fprint(file, "apiVersion: v1\nkind: Secret\nmetadata: {name: shop-credentials, namespace: default}\nstringData: {DB_PASSWORD: change-me}\n")
	for name, secret := range map[string]string{
		"shop": "shop-credentials", "docs": "shop-credentials", "status": "shop-credentials", "events": "shop-credentials", "jobs": "shop-credentials",
		"blog": "cms-credentials", "news": "cms-credentials", "press": "cms-credentials", "wiki": "cms-credentials", "checkout": "payment-credentials", "billing": "payment-credentials",
	} {
		fmt.Fprintf(file, "---\napiVersion: web.ctrlkit.dev/v1\nkind: Website\nmetadata: {name: %[1]s, namespace: default}\n"+
			"spec: {host: %[1]s.example.com, replicas: 2, content: {index.html: Hello}, credentialsSecret: %[2]s}\n", name, secret)
	}
	_, err = file.Seek(0, io.SeekEnd)
	return file.Name(), err
}
