// Package cachedir keeps Graphviz' machine code where only its owner can write it.
//
// github.com/goccy/go-graphviz compiles its WebAssembly while it is initialised and keeps the machine code below the directory
// for temporary files, under a fixed name, to load and run it at the next start. On a machine with several users anybody can
// have made that directory before. There is no option for another place. This package points TMPDIR at a directory of the
// user's own until go-graphviz is initialised.
//
// It depends on the order of initialisation that the language specification gives: of the packages that are ready, the one whose
// import path is first. This package needs nothing but package os and stands before github.com/goccy. A test of
// package graphviz shows that it works.
package cachedir

import (
	"os"
	"path/filepath"
	"runtime"
)

var (
	before string
	wasSet bool
	moved  bool
)

func init() {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return // temporary files are below the user's own directory already
	}
	before, wasSet = os.LookupEnv("TMPDIR")
	moved = true
	// An error leaves the variable as it is at worst, and there is nobody to tell during initialisation.
	_ = os.Setenv("TMPDIR", private())
}

// private returns a directory that only this user can write to. If there is none, the null device is returned, below which
// nothing can be made: then go-graphviz keeps nothing. A home directory that does not exist is not made: somebody has said so
// on purpose.
func private() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return os.DevNull
	}
	if _, err := os.Stat(filepath.Dir(cache)); err != nil {
		return os.DevNull
	}
	dir := filepath.Join(cache, "ctrlkit", "graphviz")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return os.DevNull
	}
	return dir
}

// Restore gives TMPDIR back the value that it had when the process started.
func Restore() {
	switch {
	case !moved:
	case wasSet:
		_ = os.Setenv("TMPDIR", before)
	default:
		_ = os.Unsetenv("TMPDIR")
	}
	moved = false
}
