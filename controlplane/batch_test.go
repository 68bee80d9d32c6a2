// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// checkServersAlone checks that the API server can be run, and that the clients are missing.
func checkServersAlone(t *testing.T, assets Assets) {
	t.Helper()
	if err := assets.lack(servers.programs()); err != nil {
		t.Error(err)
	}
	for _, name := range clients.programs() {
		if assets.lack([]string{name}) == nil {
			t.Errorf("%s is there, too", name)
		}
	}
}

func TestServersAreUsableBeforeTheRest(t *testing.T) {
	useSource(t, smallMain)
	assets, rest, err := findServers(t.Context(), AllParts, nil)
	must(t, err)
	if checkServersAlone(t, assets); rest == nil {
		t.Fatal("nothing is to be built")
	}
	for _, name := range servers.programs() {
		if output, err := exec.Command(assets.Program(name)).Output(); err != nil || string(output) != assets.Program(name) {
			t.Errorf("running %s: %q, %v", name, output, err)
		}
	}
	must(t, rest(t.Context()))
	if err := assets.check(AllParts); err != nil {
		t.Error(err)
	}
	if _, rest, err := findServers(t.Context(), AllParts, nil); err != nil || rest != nil {
		t.Errorf("afterwards, %v, and something is to be built: %t", err, rest != nil)
	}
}

func TestAFailureOfTheRestKeepsTheServers(t *testing.T) {
	source, cache := useSources(t, smallMain, brokenMain)
	assets := Assets{Dir: filepath.Join(cache, keyOf(t))}
	_, err := Build(t.Context(), BuildOptions{})
	if err == nil || !strings.Contains(err.Error(), "controllers: compiling") || !strings.Contains(err.Error(), "undefined: undefinedFunction") {
		t.Errorf("err = %v, want one that names the controllers, and the compiler's words", err)
	}
	checkServersAlone(t, assets)
	checkNothingHalfFinished(t, cache)

	// The next build does not repeat what was built.
	must(t, os.WriteFile(filepath.Join(source, "cmd", "clients", "main.go"), []byte(smallMain), 0o644))
	must(t, os.Rename(assets.Dir, filepath.Join(cache, keyOf(t)))) // as if the source were the same
	var said strings.Builder
	_, err = Build(t.Context(), BuildOptions{Progress: &said})
	must(t, err)
	if got := said.String(); strings.Contains(got, "API server") || !strings.Contains(got, "built the controllers") {
		t.Errorf("the next build said %q, want that only the clients are built", got)
	}
}

func TestAnInterruptionOfTheRestKeepsTheServers(t *testing.T) {
	_, cache := useSource(t, smallMain)
	ctx, cancel := context.WithCancel(t.Context())
	progress := writerFunc(func(text string) {
		if strings.Contains(text, "controllers") {
			cancel()
		}
	})
	_, err := Build(ctx, BuildOptions{Progress: progress})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "controllers") {
		t.Errorf("err = %v, want %v of the controllers", err, context.Canceled)
	}
	checkServersAlone(t, Assets{Dir: filepath.Join(cache, keyOf(t))})
	checkNothingHalfFinished(t, cache)
	built(t)
}

// A process takes the API server that another has built, and one of both builds the rest.
func TestTwoProcessesBuildTheRestOnce(t *testing.T) {
	useSource(t, smallMain)
	var said [2]strings.Builder
	assets, rest, err := findServers(t.Context(), AllParts, &said[0])
	must(t, err)
	other, otherRest, err := findServers(t.Context(), AllParts, &said[1])
	must(t, err)
	if assets != other || said[1].Len() > 0 {
		t.Errorf("they build in %s and %s, and the other said %q", assets.Dir, other.Dir, &said[1])
	}
	var group sync.WaitGroup
	for _, build := range []func(context.Context) error{rest, otherRest} {
		group.Go(func() {
			if err := build(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := strings.Count(said[0].String()+said[1].String(), "built the controllers"); got != 1 {
		t.Errorf("the rest was built %d times", got)
	}
}

// A former version has linked all programs to one binary.
func TestBuildTakesADirectoryOfAFormerVersion(t *testing.T) {
	_, cache := useSource(t, brokenMain)
	dir := Assets{Dir: filepath.Join(cache, keyOf(t))}
	must(t, os.Mkdir(dir.Dir, 0o755))
	must(t, os.WriteFile(dir.Program("kubernetes"), nil, 0o755))
	must(t, os.WriteFile(dir.Program(kwokProgram), nil, 0o755))
	for _, name := range slices.DeleteFunc(slices.Concat(servers.programs(), clients.programs()), func(name string) bool { return name == kwokProgram }) {
		must(t, os.Link(dir.Program("kubernetes"), dir.Program(name)))
	}
	if got := built(t); got != dir {
		t.Errorf("built %s", got.Dir)
	}
}
